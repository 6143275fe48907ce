"""What is kept of an exception: a line and the end of its traceback, bounded, and safe to print anywhere.

The exception is a stranger's: its `__str__` may raise, return megabytes, hide terminal codes, or never end.
So these functions let the timeout through, and nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from taskbatch.watch import JobTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ERROR = 4096
"""Bytes of UTF-8 kept of an error's text; its beginning."""

MAX_TRACEBACK = 8192
"""Bytes of UTF-8 kept of a traceback; its end."""

_FRAMES = 30
_CHAIN = 5
_OURS = f"{Path(__file__).parent}/"


def error_text(error: BaseException, redact: Callable[[str], str] = str) -> str:
    """Return `Type: message` in one line of at most 4 KiB; `redact` takes out secrets, before anything is cut off."""
    text = redact(_message(error))
    return one_line(f"{_name(error)}: {text}" if text else _name(error))


def one_line(text: str) -> str:
    """Return `text` with everything escaped that is not plainly printable, at most 4 KiB of it."""
    return _printable(text[:MAX_ERROR]).encode()[:MAX_ERROR].decode(errors="ignore")


def traceback_text(error: BaseException, redact: Callable[[str], str] = str) -> str:
    """Return the last frames of the error and its causes, without our own, at most 8 KiB, `redact`ed."""
    try:
        text = "\nThis led to:\n\n".join(reversed([_section(link, redact) for link in _chain(error)]))
    except JobTimeout:
        raise
    except BaseException as trouble:  # noqa: BLE001 - better no traceback than a lost task
        text = f"(no traceback: {_name(trouble)})"
    lines = [_printable(line) for line in text[-MAX_TRACEBACK:].split("\n")]
    return "\n".join(lines).encode()[-MAX_TRACEBACK:].decode(errors="ignore")


def _section(error: BaseException, redact: Callable[[str], str]) -> str:
    from traceback import format_tb  # noqa: PLC0415 - most runs have no failure

    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return redact("".join(format_tb(frames, limit=-_FRAMES))) + error_text(error, redact)[:1024] + "\n"


def _chain(error: BaseException) -> list[BaseException]:
    chain, link = [error], error
    while len(chain) < _CHAIN:
        following = link.__cause__ if link.__suppress_context__ else link.__context__
        if following is None or any(following is known for known in chain):
            break
        chain.append(following)
        link = following
    return chain


def _name(error: BaseException) -> str:
    try:
        module, name = str(type(error).__module__)[:200], str(type(error).__qualname__)[:200]
    except JobTimeout:
        raise
    except BaseException:  # noqa: BLE001 - a metaclass is a stranger's too
        return "an exception without a name"
    return name if module in {"builtins", "__main__"} else f"{module}.{name}"


def _message(error: BaseException) -> str:
    try:
        # A subclass of str could be anything; joining makes a plain one.
        # More than is kept, so that what is cut here is not a secret that will be looked for.
        return "".join((str(error),))[: MAX_ERROR * 16]
    except JobTimeout:
        raise
    except BaseException:  # noqa: BLE001 - whatever a stranger's __str__ raises
        return "(its text cannot be had)"


def _printable(text: str) -> str:
    # Not printable are control characters, lone surrogates, and marks that make a terminal reorder a line.
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
