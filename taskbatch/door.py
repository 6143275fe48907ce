"""Waiting for new work while nothing is in flight.

BLMOVE moves the next task onto its own place: nothing changes hands, every waiter wakes, and the
lease-guarded claim takes. A BLMOVE straight into a processing list would strand the task whenever the
waiter is gone, reaped or closed by then.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from taskbatch.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskbatch.connect import Link

SLICE_SECONDS = 1.0
"""Longest single wait: a half-open connection, a signal or a lease must not go unnoticed for longer."""

SHORTEST_BLOCK = 0.01
"""Below this a server may round the timeout to zero, which means for ever."""


class Door:
    """Waits at the pending lists in turn. `rest` waits without Redis, and ends early on a signal."""

    def __init__(self, link: Link, rest: Callable[[float], None]) -> None:
        self._link = link
        self._rest = rest
        self._turn = 0

    def wait(self, pending: Sequence[str], seconds: float) -> None:
        """Wait until one of the lists may have a task, at most `seconds` and one slice."""
        seconds = min(seconds, SLICE_SECONDS)
        if not pending or seconds < SHORTEST_BLOCK:
            self._rest(seconds)
            return
        # One list at a time: a blocking move cannot watch several, so each gets its share of a slice.
        share = max(SHORTEST_BLOCK, seconds / len(pending))
        lists = cycle(pending)
        for _ in range(self._turn % len(pending)):
            next(lists)
        self._turn += 1
        for key in [next(lists) for _ in pending]:
            try:
                found = self._link.call(
                    "BLMOVE", key, key, "RIGHT", "RIGHT", f"{share:.3f}", timeout=share + self._link.timeout
                )
            except RefusedError:
                # At maxmemory Redis refuses to move even in place; the claim script still works.
                self._rest(share)
                continue
            if found is not None:
                return
