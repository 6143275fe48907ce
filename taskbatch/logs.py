"""Log lines: text for people, one JSON object a line for programs. Never a control character, never a secret."""

from __future__ import annotations

import json
import logging
import re
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable

LogFormat = Literal["auto", "text", "json"]

MAX_LINE = 16_000
"""Most characters of one message; a job may log whatever it likes."""

MIN_SECRET = 4
"""A shorter secret is not looked for: it would blot out half of every line and hide nothing."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROL |= {9: "\\t", 10: "\\n", 13: "\\r", 0x2028: "\\u2028", 0x2029: "\\u2029"}
# Invisible, and they make a line read differently from what it says.
_INVISIBLE = (0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
_CONTROL |= {code: f"\\u{code:04x}" for code in _INVISIBLE}
_LOGIN = re.compile(r"(?<=://)[^\s/?#@]*:[^\s/?#]*@")


def escape(text: str) -> str:
    """Return `text` as one line: what could end a line, move a cursor or reorder letters is spelled out."""
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode()


class Redactor:
    """Blots out the secrets it was told of, plain and encoded, and the login in any URL."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn(self, *secrets: str | None) -> None:
        """Remember these; None and what is too short to look for are left out."""
        self._secrets |= {secret for secret in secrets if secret and len(secret) >= MIN_SECRET}
        if self._secrets:
            longest_first = sorted(self._secrets, key=len, reverse=True)
            self._pattern = re.compile("|".join(form for secret in longest_first for form in _forms(secret)))

    def __call__(self, text: str) -> str:
        """Return `text` without them."""
        if self._pattern is not None:
            text = self._pattern.sub("***", text)
        return _LOGIN.sub("***@", text) if "://" in text else text


class _NoLock:
    """What `logging` takes for a lock of a handler."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        pass


class LineHandler(logging.Handler):
    """Gives each record as one line (without its end) to `write`, which must not raise and keeps lines apart."""

    def __init__(self, write: Callable[[str], None], formatter: logging.Formatter) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(formatter)

    def createLock(self) -> None:  # noqa: N802 - the name is logging's
        """Have none: a job's timeout may arrive right after it was taken, and then nobody could log any more."""
        self.lock = _NoLock()  # type: ignore[assignment]

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record; one that cannot be formatted is named instead, for logging never fails a task."""
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - a raising __str__ in an argument
            line = escape(f"a log record of {record.name} cannot be formatted: {type(error).__name__}")
        self._write(line)


class TextFormatter(logging.Formatter):
    """`12:30:05 warning message key=value`; with the date where nobody watches."""

    def __init__(self, redact: Callable[[str], str], *, live: bool) -> None:
        super().__init__()
        self._redact = redact
        self._live = live

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; what a debug line or a traceback has more follows on lines of its own, indented."""
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created)) if self._live else _utc(record.created)
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        fields = "".join(f" {name}={value}" for name, value in _extras(record, self._redact).items())
        message, more = _message(record, self._redact), ""
        if record.levelno <= logging.DEBUG:
            message, _, more = message.partition("\n")
        more += self._redact(_traceback(self, record))
        return "\n".join(
            [f"{stamp} {level}{escape(message + fields)}", *(f"  {escape(one)}" for one in more.splitlines())]
        )


class JsonFormatter(logging.Formatter):
    """`{"time": …, "level": …, "logger": …, "message": …}` and the fields given as `extra`."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, in ASCII."""
        entry: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record, self._redact),
        }
        for name, value in _extras(record, self._redact).items():
            entry.setdefault(name, value)
        if trace := _traceback(self, record):
            entry["traceback"] = self._redact(trace)
        # JSON allows DEL as it is; a terminal does not.
        return json.dumps(entry).replace("\x7f", "\\u007f")


def configure(
    log_format: LogFormat,
    *,
    write: Callable[[str], None],
    live: bool,
    verbose: int = 0,
    quiet: bool = False,
    redact: Callable[[str], str] = str,
) -> logging.Handler:
    """Send all log records to `write`, line by line; returns the handler, to be removed by tests.

    `live`: a person watches, which is what `auto` goes by. Normally lines from `info` on are written, with
    `quiet` only errors; `verbose` 1 adds our own `debug` lines, 2 everybody's.
    """
    as_text = log_format == "text" or (log_format == "auto" and live)
    formatter = TextFormatter(redact, live=live) if as_text else JsonFormatter(redact)
    handler = LineHandler(write, formatter)
    root, own = logging.getLogger(), logging.getLogger("taskbatch")
    root.handlers[:] = [handler]
    everybody = logging.DEBUG if verbose > 1 else logging.INFO
    root.setLevel(logging.ERROR if quiet else everybody)
    own.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
    return handler


def _message(record: logging.LogRecord, redact: Callable[[str], str]) -> str:
    # Before it is cut: what is left of a secret then could not be told any more.
    message = redact(record.getMessage()[: 4 * MAX_LINE])
    return message if len(message) <= MAX_LINE else f"{message[:MAX_LINE]}…"


def _extras(record: logging.LogRecord, redact: Callable[[str], str]) -> dict[str, object]:
    extras = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {
        name: value
        if value is None or isinstance(value, (bool, int, float))
        else redact(str(value)[: 4 * MAX_LINE])[:MAX_LINE]
        for name, value in extras.items()
    }


def _forms(secret: str) -> list[str]:
    """Return patterns of a secret as it is, as it is quoted (also more than once), and percent-encoded."""
    raw = secret.encode("utf-8", "surrogateescape")
    encoded = {quote(raw, safe=""), quote(raw), quote_plus(raw)} - {secret}
    return ["".join(map(_quoted, secret)), *map(re.escape, sorted(encoded))]


def _quoted(character: str) -> str:
    """Return a pattern of a character in the quotes of Python or JSON: each level of them adds backslashes."""
    if character == "\\":
        return r"\\+"
    if character in "'\"":
        return rf"\\*{character}"
    if " " <= character <= "~":
        return re.escape(character)
    # \xf6, \u00f6, \ud83d\ude00, \n
    return rf"(?:{re.escape(character)}|(?:\\+(?:[xuU][0-9a-fA-F]+|[a-z]))+)"


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the traceback a record brings along, which only `-v` wants to see."""
    if not record.exc_info or not logging.getLogger("taskbatch").isEnabledFor(logging.DEBUG):
        return ""
    return formatter.formatException(record.exc_info)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
