"""Dead letters: reading them page by page, putting them back, deleting them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from taskbatch.connect import checked
from taskbatch.scripts import Call
from taskbatch.settlement import reset
from taskbatch.task import Task, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskbatch.keys import Keys
    from taskbatch.scripts import Scripts

PAGE = 100
"""How many dead letters one round trip reads; each may be a megabyte."""

BATCH_BYTES = 4 * 1024 * 1024
"""How many bytes of tasks one round trip puts back, about."""

_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `entry` is its id in the stream, `task` None if `raw` is no task, `at_ms` Unix ms or 0."""

    entry: str
    task: Task | None
    raw: bytes
    reason: str
    error: str
    run: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Letters:
    """The dead letters of one queue. Raises what `connect.checked` raises."""

    scripts: Scripts
    keys: Keys

    def __iter__(self) -> Iterator[Letter]:
        """Yield them, the oldest first. It ends at what was the newest when it began, so it does end."""
        newest = self._ask("XREVRANGE", self.keys.dead, "+", "-", "COUNT", 1)
        if not newest:
            return
        start, last = "-", newest[0][0].decode()
        while page := self._ask("XRANGE", self.keys.dead, start, last, "COUNT", PAGE):
            yield from map(_letter, page)
            start = f"({page[-1][0].decode()}"

    def newest(self, limit: int) -> list[Letter]:
        """Return at most `limit`, the newest first."""
        found: list[Letter] = []
        end = "+"
        while len(found) < limit:
            page = self._ask("XREVRANGE", self.keys.dead, end, "-", "COUNT", min(PAGE, limit - len(found)))
            if not page:
                break
            found += map(_letter, page)
            end = f"({page[-1][0].decode()}"
        return found

    def count(self) -> int:
        """Return how many there are."""
        return int(self._ask("XLEN", self.keys.dead))

    def find(self, name: str) -> list[Letter]:
        """Return the one with the entry id `name`, else all of the task with that id: it may have died twice.

        By task id it reads the whole stream, page by page.
        """
        if _ENTRY.fullmatch(name):
            # An id beyond 64 bits is an error reply, and no entry.
            low, high = (int(part) for part in name.split("-"))
            page = self._ask("XRANGE", self.keys.dead, name, name) if max(low, high) < 2**64 else []
            if page:
                return [_letter(page[0])]
        return [letter for letter in self if letter.task is not None and letter.task.id == name]

    def redrive(self, letters: Sequence[Letter]) -> int:
        """Put these back into the queue, counters at zero; returns how many were still there."""
        keys = [self.keys.dead, self.keys.pending, self.keys.totals]
        return self._each([Call("redrive", keys, [one.entry, reset(one.raw, one.task)]) for one in letters])

    def discard(self, letters: Sequence[Letter]) -> int:
        """Delete these for good; returns how many were still there."""
        keys = [self.keys.dead, self.keys.totals]
        return self._each([Call("discard", keys, [one.entry]) for one in letters])

    def redrive_all(self) -> int:
        """Put back all that are there now, the oldest first; returns how many."""
        return sum(self.redrive(page) for page in self._pages())

    def discard_all(self) -> int:
        """Delete all that are there now; returns how many."""
        return sum(self.discard(page) for page in self._pages())

    def _pages(self) -> Iterator[list[Letter]]:
        letters = iter(self)
        while page := list(islice(letters, PAGE)):
            yield page

    def _each(self, calls: list[Call]) -> int:
        done = size = 0
        batch: list[Call] = []
        for call in calls:
            batch.append(call)
            size += len(call.args[-1])
            if size >= BATCH_BYTES:
                done += self._send(batch)
                batch, size = [], 0
        return done + self._send(batch)

    def _send(self, batch: list[Call]) -> int:
        return sum(int(checked(reply)) for reply in self.scripts.exchange(batch)) if batch else 0

    def _ask(self, *command: object) -> Any:  # noqa: ANN401 - a Redis reply
        return self.scripts.link.call(*command)


def _letter(entry: tuple[bytes, list[bytes]]) -> Letter:
    """Turn an entry of the stream into a value; foreign entries may lack any field."""
    name, flat = entry
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    raw = fields.get(b"task", b"")
    at = fields.get(b"at", b"")

    def text(field: bytes) -> str:
        return fields.get(field, b"").decode("utf-8", "replace")

    return Letter(
        entry=name.decode(),
        task=parse(raw),
        raw=raw,
        reason=text(b"reason"),
        error=text(b"error"),
        run=text(b"run"),
        at_ms=int(at) if at.isdigit() else 0,
    )
