"""The reaper: gives back what crashed runs left behind, chunk by chunk. It decides nothing."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskbatch.connect import checked
from taskbatch.queue import RunQueue, read_reaped

if TYPE_CHECKING:
    from taskbatch.scripts import Scripts

log = logging.getLogger(__name__)

RUNS_A_LOOK = 1000


@dataclass(slots=True)
class Reaped:
    """What a look of the reaper has moved."""

    runs: int = 0
    recovered: int = 0
    suspects: int = 0
    dead: int = 0
    promoted: int = 0

    @property
    def moved(self) -> int:
        """How many tasks were taken from expired runs."""
        return self.recovered + self.suspects + self.dead


@dataclass(frozen=True, slots=True)
class Reaper:
    """Reaps one queue. `lease` is what a run without an entry is granted before it counts as crashed, seconds."""

    scripts: Scripts
    queue: RunQueue
    lease: float

    def look(self, *, until: float | None = None, deep: bool = False) -> Reaped:
        """Move on what expired runs hold and what has fallen due; ends at `until` (`time.monotonic()`) at the latest.

        `deep` also looks for lists whose run has no entry at all, with SCAN over the whole database.
        """
        done = Reaped()
        runs = self._expired()
        if deep:
            runs += [run for run in self._orphans() if run not in runs]
        for run in runs:
            self._reap(run, done, until)
        while not _over(until):
            moved = self.scripts.call(*self.queue.promote())
            done.promoted += moved
            if not moved:
                break
        return done

    def _expired(self) -> list[str]:
        link, keys = self.scripts.link, self.queue.keys
        # In one round trip; the script looks at the clock again.
        seconds, expired, known, informed = map(
            checked,
            link.exchange(
                [
                    ("TIME",),
                    ("ZRANGE", keys.runs, "-inf", "+inf", "BYSCORE", "LIMIT", 0, RUNS_A_LOOK, "WITHSCORES"),
                    ("ZCARD", keys.runs),
                    ("HLEN", keys.runs_info),
                ]
            ),
        )
        now = int(seconds[0]) * 1000 + int(seconds[1]) // 1000
        pairs = list(zip(expired[::2], expired[1::2], strict=True))
        runs = [run.decode() for run, score in pairs if float(score) <= now]
        if informed > known:
            members = {run.decode() for run, _ in pairs}
            names = checked(link.exchange([("HKEYS", keys.runs_info)])[0])
            runs += [name.decode() for name in names if name.decode() not in members and len(pairs) < RUNS_A_LOOK]
        return [run for run in runs if run != self.queue.run]

    def _orphans(self) -> list[str]:
        prefix = self.queue.keys.processing("", 0)[: -len(":0")]
        pattern = "".join(f"\\{c}" if c in "*?[]\\" else c for c in prefix) + "*"
        found: dict[str, None] = {}
        cursor: bytes | int = 0
        while True:
            cursor, names = self.scripts.link.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            for name in names:
                run, _, n = name.decode()[len(prefix) :].rpartition(":")
                if run and n in {"0", "1", "2"} and run != self.queue.run:
                    found[run] = None
            if int(cursor) == 0:
                return list(found)

    def _reap(self, run: str, done: Reaped, until: float | None) -> None:
        while not _over(until):
            chunk = read_reaped(self.scripts.call(*self.queue.reap(run, self.lease)))
            done.recovered += chunk.recovered
            done.suspects += chunk.suspects
            done.dead += chunk.dead
            if chunk.status == "noted":
                log.warning("queue %s: found tasks of run %s, which has no lease", self.queue.keys.queue, run)
            if chunk.status == "done":
                done.runs += 1
                log.warning("queue %s: run %s crashed; what it held was given back", self.queue.keys.queue, run)
            if chunk.status != "more":
                return


def _over(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until
