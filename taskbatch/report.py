"""What a run did, as values: counted while it goes, reported when it ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from taskbatch.errors import ExitCode

StopReason = Literal[
    "empty",
    "max_tasks",
    "max_runtime",
    "signal",
    "paused",
    "overlap",
    "lease_lost",
    "redis_lost",
    "stuck_thread",
    "error",
]
"""Why a run ended; the first one wins. `error`: it failed before or beside its tasks, the exit code says how."""

OUTCOMES = ("succeeded", "retried", "released", "dead", "expired", "lost")
RELEASE_REASONS = ("limit", "shutdown", "unknown", "no_time")
MAX_LISTED = 20
"""How many dead letters a report names."""


@dataclass(slots=True)
class Tally:
    """Counts of a run while it goes on. `claimed` is the sum of all outcomes once nothing is held any more.

    `waiting` is how many tasks could be claimed when that was last counted; None: it was not.
    """

    claimed: int = 0
    waiting: int | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    released_by: Counter[str] = field(default_factory=Counter)
    by_type: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed_attempts: int = 0
    dead_failed: int = 0
    reaped: int = 0
    crashed: int = 0
    dead_letters: list[dict[str, str]] = field(default_factory=list)

    def count(self, kind: str, outcome: str) -> None:
        """Count one outcome of one task of type `kind`."""
        self.outcomes[outcome] += 1
        self.by_type.setdefault(kind, Counter())[outcome] += 1

    def take_reaped(self, moved: int, dead: int) -> None:
        """Count what a look of the reaper has moved, `dead` of it to the dead letters."""
        self.reaped += moved
        self.crashed += dead

    @property
    def idle(self) -> bool:
        """Whether the run found nothing to do."""
        return not (self.claimed or self.reaped)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left in the queues of a run; `processing` is held by other runs."""

    pending: int = 0
    recovered: int = 0
    suspects: int = 0
    scheduled: int = 0
    processing: int = 0

    @property
    def claimable(self) -> int:
        """How many a run could take at once."""
        return self.pending + self.recovered + self.suspects

    def __add__(self, other: Remaining) -> Remaining:
        return Remaining(
            self.pending + other.pending,
            self.recovered + other.recovered,
            self.suspects + other.suspects,
            self.scheduled + other.scheduled,
            self.processing + other.processing,
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The end of a run. Times are seconds; `started_at` and `next_due_at` are seconds since the epoch."""

    run_id: str
    queues: tuple[str, ...]
    stop_reason: StopReason
    started_at: float
    duration: float
    tally: Tally
    remaining: Remaining | None
    next_due_at: float | None
    pushed: bool | None
    error: str | None
    exit_code: ExitCode | int

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `--report json` prints; its fields are a public contract."""
        tally = self.tally
        remaining = self.remaining
        return {
            "schema_version": 1,
            "run_id": self.run_id,
            "queues": list(self.queues),
            "stop_reason": self.stop_reason,
            "started_at": rfc3339(self.started_at),
            "duration_seconds": round(self.duration, 3),
            "claimed": tally.claimed,
            **{name: tally.outcomes[name] for name in OUTCOMES},
            "released_by": {name: tally.released_by[name] for name in RELEASE_REASONS},
            "reaped": tally.reaped,
            "by_type": {
                kind: {**{name: counts[name] for name in OUTCOMES}, "seconds": round(tally.seconds.get(kind, 0.0), 6)}
                for kind, counts in sorted(tally.by_type.items())
            },
            "remaining": None
            if remaining is None
            else {name: getattr(remaining, name) for name in Remaining.__slots__},
            "dead_letters": tally.dead_letters,
            "next_due_at": None if self.next_due_at is None else rfc3339(self.next_due_at),
            "pushed": self.pushed,
            "error": self.error,
            "exit_code": int(self.exit_code),
        }


def rfc3339(seconds: float) -> str:
    """Return a time as RFC 3339 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def exit_code(
    tally: Tally, stop_reason: StopReason, *, fail_on: str, remaining: Remaining | None, remaining_exit_code: int
) -> int:
    """Return the exit code of a run that went through; the first that applies: 75, 1, remaining, 0."""
    handed_back = tally.released_by["shutdown"] + tally.outcomes["lost"] > 0
    if stop_reason in ("lease_lost", "redis_lost", "stuck_thread") or (stop_reason == "signal" and handed_back):
        return ExitCode.INTERRUPTED
    dead = tally.outcomes["dead"] + tally.crashed
    if (fail_on != "never" and dead) or (fail_on == "failed" and tally.failed_attempts):
        return ExitCode.FAILED
    if remaining is not None and remaining.claimable:
        return remaining_exit_code
    return ExitCode.OK
