"""SIGTERM and SIGINT: counted, and nothing else, for anything more could deadlock where it interrupts."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Signals:
    """How often this process was told to stop, and when first (`time.monotonic()`).

    `wake` is called from the handler and must be reentrant.
    """

    def __init__(self) -> None:
        self.received = 0
        self.since: float | None = None
        self.name = ""
        self.wake: Callable[[], None] | None = None

    def install(self) -> None:
        """Take over SIGTERM and SIGINT; as PID 1 nothing else would make the process notice them."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: object) -> None:
        self.received += 1
        self.since = self.since or time.monotonic()
        self.name = self.name or signal.Signals(number).name
        if self.wake is not None:
            self.wake()
