"""A queue as a run sees it: each method builds one call of a script or reads its reply. Nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskbatch.scripts import Call
from taskbatch.settings import CHUNK_BYTES, CHUNK_TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.keys import Keys
    from taskbatch.settlement import Settlement

SCHEMA = 1
"""Version of keys and stored forms; a run that meets a higher one must not touch the queue."""

_TYPES = {
    "pending": "list",
    "recovered": "list",
    "suspects": "list",
    "scheduled": "zset",
    "dead": "stream",
    "totals": "hash",
    "totals_push": "string",
    "history": "stream",
    "paused": "string",
    "limit": "hash",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """Reply of a claim: `entries` are (n, stored bytes) in the order they are to be run."""

    status: str
    now_ms: int
    lengths: tuple[int, int, int]
    window: str
    at_ms: int
    entries: list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Settled:
    """Reply of a settle: for each task whether it was still ours, and so was moved."""

    now_ms: int
    lengths: tuple[int, int, int]
    done: list[bool]


@dataclass(frozen=True, slots=True)
class Reaped:
    """Reply of one chunk of reaping."""

    status: str
    recovered: int
    suspects: int
    dead: int


@dataclass(frozen=True, slots=True)
class RunQueue:
    """The calls of one run on one queue."""

    keys: Keys
    run: str

    @property
    def own_lists(self) -> list[str]:
        """The run's three processing lists."""
        return self.keys.own_lists(self.run)

    def open(self, lease: float, info: str, cap: int) -> Call:
        """Register the lease of `lease` seconds."""
        keys = self.keys
        checked = [getattr(keys, name) for name in _TYPES]
        return Call(
            "open_run",
            [keys.runs, keys.runs_info, keys.config, *checked],
            [self.run, _ms(lease), info, SCHEMA, cap, *_TYPES.values()],
        )

    def claim(self, want: int) -> Call:
        """Move up to `want` tasks to the run."""
        k = self.keys
        keys = [k.runs, k.paused, k.config, k.limit, k.scheduled, k.pending, k.recovered, k.suspects, k.totals]
        return Call("claim", [*keys, *self.own_lists], [self.run, want, CHUNK_BYTES])

    def claim_suspect(self) -> Call:
        """Move one suspect to the run, if the run holds nothing."""
        k = self.keys
        return Call(
            "claim_suspect",
            [k.runs, k.paused, k.config, k.limit, k.suspects, k.totals, *self.own_lists],
            [self.run],
        )

    def renew(self, lease: float) -> Call:
        """Extend the lease to `lease` seconds from now."""
        return Call("renew", [self.keys.runs], [self.run, _ms(lease)])

    def settle(self, batch: Sequence[Settlement]) -> Call:
        """Write a batch of outcomes."""
        k = self.keys
        keys = [k.scheduled, k.pending, k.recovered, k.suspects, k.dead, k.totals, k.limit, *self.own_lists]
        args: list[Any] = [self.run, len(batch)]
        for one in batch:
            unique = ""
            if one.unique is not None:
                keys.append(k.unique(one.unique[0]))
                unique = f"{len(keys)} {one.unique[1]}"
            args += (
                one.n, one.entry, one.verb, one.stored, one.detail, one.error, one.tally,
                one.duration_us, one.latency_ms, one.window, unique,
            )  # fmt: skip
        return Call("settle", keys, args)

    def promote(self) -> Call:
        """Move one chunk of what is due."""
        k = self.keys
        return Call("promote", [k.scheduled, k.pending, k.recovered, k.suspects], [CHUNK_TASKS, CHUNK_BYTES])

    def reap(self, run: str, orphan_lease: float) -> Call:
        """Move one chunk of what the expired `run` left behind."""
        k = self.keys
        return Call(
            "reap",
            [k.runs, k.runs_info, k.recovered, k.suspects, k.dead, k.totals, k.history, *k.own_lists(run)],
            [run, CHUNK_TASKS, CHUNK_BYTES, self.run, _ms(orphan_lease)],
        )

    def close(self, ending: Ending) -> Call:
        """End the run, which must hold nothing any more."""
        k = self.keys
        return Call(
            "close_run",
            [k.runs, k.runs_info, k.history, k.totals, *self.own_lists],
            [
                self.run, ending.result, ending.stop_reason, int(ending.exit_code), ending.started_ms,
                int(ending.duration * 1e6), ending.summary, "1" if ending.idle else "0",
            ],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ending:
    """What the history keeps of a run; `duration` in seconds."""

    result: str
    stop_reason: str
    exit_code: int
    started_ms: int
    duration: float
    summary: str
    idle: bool


def read_claim(reply: list[Any], *, suspect: bool = False) -> Claim:
    """Turn a reply of `claim` (of `claim_suspect`: `suspect`) into values."""
    window, recovered, tasks = int(reply[5]), int(reply[7]), reply[8:]
    lists = [2] * len(tasks) if suspect else [1] * recovered + [0] * (len(tasks) - recovered)
    return Claim(
        reply[0].decode(),
        int(reply[1]),
        (int(reply[2]), int(reply[3]), int(reply[4])),
        str(window) if window >= 0 else "",
        int(reply[6]),
        list(zip(lists, tasks, strict=True)),
    )


def read_settled(reply: list[Any]) -> Settled:
    """Turn a reply of `settle` into values."""
    return Settled(
        int(reply[0]),
        (int(reply[1]), int(reply[2]), int(reply[3])),
        [flag == ord("1") for flag in reply[4]],
    )


def read_reaped(reply: list[Any]) -> Reaped:
    """Turn a reply of `reap` into values."""
    return Reaped(reply[0].decode(), int(reply[1]), int(reply[2]), int(reply[3]))


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1000))
