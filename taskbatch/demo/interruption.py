"""Ctrl-C, SIGTERM and SIGHUP during the demo: one of them ends it, further ones do not disturb the clearing away."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Turns the first of these signals into a KeyboardInterrupt; from then on they are ignored."""

    def __init__(self) -> None:
        self._held_back = False
        self._came = False
        # Who ignores a signal (nohup, a job in the background) goes on ignoring it.
        heard = [number for number in _ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._take) for number in heard}

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let it come only at the end of the block: what is begun in there must not get lost."""
        self._held_back = True
        try:
            yield
        finally:
            self._held_back = False
        if self._came:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """Hear none of them any more."""
        for number in _ENDINGS:
            signal.signal(number, signal.SIG_IGN)

    def restore(self) -> None:
        """Handle them as before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.ignore()
        self._came = True
        if not self._held_back:
            raise KeyboardInterrupt
