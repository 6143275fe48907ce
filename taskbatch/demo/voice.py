"""How the demo speaks: plain lines of at most 80 columns, with a little colour where a person watches."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap

WIDEST = 80
_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{8,24}\b")


class Voice:
    """Prints to stdout; nothing here fails when nobody reads."""

    def __init__(self) -> None:
        self._colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)

    def title(self, text: str) -> None:
        """Announce the next act."""
        self.line()
        self.line(self._in(text, "1"))

    def say(self, text: str) -> None:
        """Say something in plain words, as long as it takes."""
        for line in self._wrapped(text, self._width - 2):
            self.line(f"  {line}")

    def command(self, text: str, *, prompt: str = "$") -> None:
        """Show what a person would type, never cut."""
        self.line(f"  {self._in(f'{prompt} {text}', '36')}")

    def output(self, text: str) -> None:
        """Show a line that a command has printed: a log record as its message, wrapped; anything else cut."""
        room = self._width - 4
        message = _message(text)
        if message is None:
            text = _ID.sub(r"\1…", _printable(text))
            lines = [text if len(text) <= room else f"{text[: room - 1]}…"]
        else:
            lines = self._wrapped(_ID.sub(r"\1…", _printable(message)), room, hang=2)
        for line in lines:
            self.line(f"  {self._in('│', '2')} {line}")

    def verdict(self, text: str, *, kept: bool) -> None:
        """Show whether something is as it was promised."""
        self.line(f"  {self._in('✓', '32') if kept else self._in('✗', '31')} {text}")

    def line(self, text: str = "") -> None:
        """Print a line as it is."""
        print(text, flush=True)  # noqa: T201 - this is where the demo prints

    def _in(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text

    def _wrapped(self, text: str, width: int, *, hang: int = 0) -> list[str]:
        return textwrap.wrap(text, width, subsequent_indent=" " * hang, break_on_hyphens=False)


def _message(text: str) -> str | None:
    """Return what a log record in JSON says; None for a line that is none."""
    try:
        record = json.loads(text)
        return f"{'' if record['level'] == 'info' else '! '}{record['message']}"
    except (ValueError, KeyError, TypeError):
        return None


def _printable(text: str) -> str:
    """Return `text` without its end, and without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text.rstrip())
