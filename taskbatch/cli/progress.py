"""One line on a terminal while a run goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskbatch.cli.console import Console
    from taskbatch.report import Tally

EVERY = 0.2
"""Seconds between two updates, at least."""

ENDED = ("succeeded", "dead", "expired")


class Progress:
    """Shows how far a run is: tasks done, tasks a second, what remains, failures so far."""

    def __init__(self, console: Console, *, shown: bool) -> None:
        self._console = console
        self.shown = shown and console.is_terminal
        """Whether anybody sees it."""
        self._started = time.monotonic()
        self._next = self._started + EVERY

    def show(self, tally: Tally) -> None:
        """Update the line, if it is time to."""
        if not self.shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + EVERY
        self._console.status(progress_line(tally, now - self._started))

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            self._console.status("")


def progress_line(tally: Tally, seconds: float) -> str:
    """Return the line for a run that has gone on for `seconds`."""
    done = sum(tally.outcomes[name] for name in ENDED)
    parts = [f"{done} done", f"{done / max(seconds, EVERY):.0f}/s"]
    if tally.waiting is not None:
        parts.append(f"{tally.waiting} remaining")
    held = tally.claimed - sum(tally.outcomes.values())
    if held > 0:
        parts.append(f"{held} in hand")
    parts += [f"{tally.outcomes[name]} {name}" for name in ("retried", "released", "dead") if tally.outcomes[name]]
    return " · ".join(parts)
