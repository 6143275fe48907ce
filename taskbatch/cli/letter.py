"""How a dead letter is shown. All of it comes from elsewhere: it is escaped, and bytes are shown in part."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from taskbatch.cli.text import table
from taskbatch.logs import escape
from taskbatch.report import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.letters import Letter
    from taskbatch.task import Task

MAX_CELL = 60
MAX_HEX = 256
"""How many bytes of what is not text are shown."""

MAX_TEXT = 100_000
"""How many characters of a payload are shown."""


def as_table(letters: Sequence[Letter]) -> list[str]:
    """Return a line for each."""
    head = ["id", "died", "type", "task", "reason", "error"]
    return table(head, [[_cell(cell) for cell in _row(letter)] for letter in letters])


def as_dict(letter: Letter, *, whole: bool = False) -> dict[str, Any]:
    """Return it as `--json` prints it; the `whole` of it has the task's fields, and in base64 what is no JSON."""
    task = letter.task
    shown: dict[str, Any] = {
        "id": letter.entry,
        "died_at": _time(letter.at_ms),
        "reason": letter.reason,
        "error": letter.error,
        "run": letter.run,
        "task": None if task is None else task.id,
        "type": None if task is None else task.type,
        "bytes": len(letter.raw),
    }
    if whole and task is None:
        shown["raw_base64"] = base64.b64encode(letter.raw).decode()
    elif whole and task is not None:
        shown |= _fields(task)
        payload, is_json = _json(task)
        shown |= {"payload": payload} if is_json else {"payload_base64": base64.b64encode(task.payload).decode()}
    return shown


def as_text(letter: Letter) -> str:
    """Return all of it, a field a line."""
    task = letter.task
    fields: dict[str, Any] = {
        "id": letter.entry,
        "died": _time(letter.at_ms),
        "reason": letter.reason,
        "error": letter.error,
        "run": letter.run,
    }
    if task is not None:
        fields |= {"task": task.id, "type": task.type, **_fields(task)}
    width = max(map(len, fields)) + 1
    lines = [
        f"{name + ':':<{width}} {escape(str(value))}" for name, value in fields.items() if value not in (None, "", 0)
    ]
    content = letter.raw if task is None else task.payload
    what = "bytes of the task, which cannot be read" if task is None else "payload"
    return "\n".join([*lines, f"{what} ({len(content)} bytes):", *_content(letter)])


def _row(letter: Letter) -> list[str]:
    task = letter.task
    return [
        letter.entry,
        _time(letter.at_ms) or "-",
        task.type if task is not None else "?",
        (task.id if task is not None else "") or "-",
        letter.reason,
        letter.error,
    ]


def _cell(text: str) -> str:
    line = escape(text)
    return line if len(line) <= MAX_CELL else f"{line[: MAX_CELL - 1]}…"


def _fields(task: Task) -> dict[str, Any]:
    return {
        "content_type": task.content_type,
        "enqueued_at": _time(task.enqueued_at_ms),
        "failures": task.failures,
        "interruptions": task.interruptions,
        "unroutable": task.unroutable,
        "max_attempts": task.max_attempts,
        "expires_at": _time(task.expires_at_ms),
        "limit_key": task.limit_key,
        "unique_key": task.unique_key,
        "last_error": task.last_error,
        "headers": dict(sorted(task.headers.items())) or None,
    }


def _json(task: Task) -> tuple[Any, bool]:
    try:
        return json.loads(task.payload), True
    except (ValueError, RecursionError):
        return None, False


def _content(letter: Letter) -> list[str]:
    """Return indented lines: JSON, else text, else bytes in hexadecimal."""
    content = letter.raw if letter.task is None else letter.task.payload
    if letter.task is not None:
        value, is_json = _json(letter.task)
        if is_json:
            try:
                text = json.dumps(value, indent=2, ensure_ascii=False)
            except RecursionError:
                text = content.decode("utf-8", "replace")
            return _lines(text)
        try:
            return _lines(content.decode())
        except UnicodeDecodeError:
            pass
    more = len(content) - MAX_HEX
    pairs = content[:MAX_HEX].hex(" ")
    lines = [f"  {pairs[start : start + 96]}".rstrip() for start in range(0, len(pairs), 96)]
    return [*lines, f"  … {more} bytes more"] if more > 0 else lines


def _lines(text: str) -> list[str]:
    cut = [f"  {escape(line)}" for line in text[:MAX_TEXT].split("\n")]
    return [*cut, f"  … {len(text) - MAX_TEXT} characters more"] if len(text) > MAX_TEXT else cut


def _time(ms: int) -> str | None:
    try:
        return rfc3339(ms / 1000) if ms > 0 else None
    except (ValueError, OverflowError, OSError):
        return "beyond the calendar"
