"""What a queue holds at one moment: lengths, pauses, leases, totals. Reading only, in two round trips at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskbatch.connect import checked
from taskbatch.metrics.snapshot import Snapshot
from taskbatch.report import Remaining
from taskbatch.task import bare, parse

if TYPE_CHECKING:
    from taskbatch.connect import Command, Link
    from taskbatch.keys import Keys

MAX_RUNS = 1000
"""How many runs are looked at; the lists of others are not counted."""


@dataclass(frozen=True, slots=True)
class RunLease:
    """One run: until when its lease lasts (ms of Redis TIME), and how many tasks its lists hold."""

    run: str
    expires_ms: int
    held: int
    being_reaped: bool = False

    def live(self, now_ms: int) -> bool:
        """Whether it may still work; if not, what it holds is for the reaper."""
        return not self.being_reaped and self.expires_ms > now_ms


@dataclass(frozen=True, slots=True)
class Survey:
    """One queue, read at `now_ms` of Redis TIME. Times are Unix ms; None: there is none, or it is not known."""

    queue: str
    now_ms: int
    pending: int
    recovered: int
    suspects: int
    scheduled: int
    dead: int
    processing: int
    oldest_pending_ms: int | None
    next_due_ms: int | None
    paused: str | None
    paused_for_ms: int | None
    limit: str | None
    runs: list[RunLease]
    totals: dict[str, int]

    @property
    def states(self) -> dict[str, int]:
        """How many tasks are in each place."""
        return {name: getattr(self, name) for name in STATES}

    @property
    def reapable(self) -> int:
        """How many tasks runs hold that are gone."""
        return sum(run.held for run in self.runs if not run.live(self.now_ms))

    @property
    def remaining(self) -> Remaining:
        """The part of it that a report names."""
        return Remaining(self.pending, self.recovered, self.suspects, self.scheduled, self.processing)


STATES = ("pending", "recovered", "suspects", "processing", "scheduled", "dead")


def survey(link: Link, keys: Keys) -> Survey:
    """Read one queue. Raises ConfigError for a key of a wrong type, and what a link raises."""
    now, pending, recovered, suspects, scheduled, dead, next_pending, next_recovered, due, *more = _ask(
        link,
        [
            ("TIME",),
            ("LLEN", keys.pending),
            ("LLEN", keys.recovered),
            ("LLEN", keys.suspects),
            ("ZCARD", keys.scheduled),
            ("XLEN", keys.dead),
            ("LINDEX", keys.pending, -1),
            ("LINDEX", keys.recovered, -1),
            ("ZRANGE", keys.scheduled, 0, 0, "WITHSCORES"),
            ("GET", keys.paused),
            ("PTTL", keys.paused),
            ("HGET", keys.config, "limit"),
            ("ZRANGE", keys.runs, 0, MAX_RUNS - 1, "WITHSCORES"),
            ("HGETALL", keys.totals),
        ],
    )
    paused, paused_for, limit, runs, totals = more
    leases = _leases(link, keys, _pairs(runs))
    enqueued = [_enqueued_ms(next_pending), _enqueued_ms(None if next_recovered is None else bare(next_recovered)[1])]
    return Survey(
        queue=keys.queue,
        now_ms=int(now[0]) * 1000 + int(now[1]) // 1000,
        pending=pending,
        recovered=recovered,
        suspects=suspects,
        scheduled=scheduled,
        dead=dead,
        processing=sum(lease.held for lease in leases),
        oldest_pending_ms=min((at for at in enqueued if at), default=None),
        next_due_ms=int(float(due[1])) if due else None,
        paused=None if paused is None else _text(paused),
        paused_for_ms=paused_for if paused_for >= 0 else None,
        limit=None if limit is None else _text(limit),
        runs=leases,
        totals={_text(name): int(count) for name, count in _pairs(totals) if _is_count(count)},
    )


def to_snapshot(found: Survey, version: str) -> Snapshot:
    """Return what the metrics of the queue are made from; `version` is that of this taskbatch."""
    return Snapshot(
        queue=found.queue,
        totals=found.totals,
        states=found.states,
        paused=found.paused is not None,
        oldest_pending_ms=found.oldest_pending_ms,
        version=version,
    )


def _leases(link: Link, keys: Keys, runs: list[tuple[bytes, bytes]]) -> list[RunLease]:
    if not runs:
        return []
    names = [_text(run) for run, _ in runs]
    lengths = iter(_ask(link, [("LLEN", own) for name in names for own in keys.own_lists(name)]))
    leases = []
    for name, (_, score) in zip(names, runs, strict=True):
        expires = int(float(score))
        held = next(lengths) + next(lengths) + next(lengths)
        leases.append(RunLease(name, abs(expires), held, being_reaped=expires < 0))
    return leases


def _ask(link: Link, commands: list[Command]) -> list[Any]:
    return [checked(reply) for reply in link.exchange(commands)]


def _pairs(flat: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _enqueued_ms(raw: bytes | None) -> int | None:
    """Return when a task says it was enqueued; None if it does not, or is no task."""
    task = None if raw is None else parse(raw)
    return task.enqueued_at_ms if task is not None and task.enqueued_at_ms > 0 else None


def _is_count(value: bytes) -> bool:
    return value.lstrip(b"-").isdigit()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
