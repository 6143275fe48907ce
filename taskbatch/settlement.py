"""From an outcome to what `settle` writes: pure, no I/O."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskbatch.outcome import Ack, Dead, Outcome, Release, Retry
from taskbatch.policy import duration_bucket, latency_bucket
from taskbatch.task import Task, bare, new_id, stored

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ERROR = 4096
"""How many characters of an error a task or a dead letter keeps."""

BOOKED = "limit-"
"""How the nonce of a task begins that a rate limit has sent back: it goes before newcomers."""


@dataclass(slots=True)
class Claimed:
    """One task a run holds: where, and exactly what is stored there."""

    n: int
    entry: bytes
    task: Task | None
    kind: str = "unknown"
    claimed_ms: int = 0
    window: str = ""

    @property
    def raw(self) -> bytes:
        """The task's bytes without the crash digit."""
        return self.entry if self.n == 0 else bare(self.entry)[1]

    @property
    def digit(self) -> int:
        """How many runs died holding it."""
        return 0 if self.n == 0 else bare(self.entry)[0]

    @property
    def booked(self) -> bool:
        """Whether a rate limit has sent it back before."""
        return self.task is not None and self.task.requeue_nonce.startswith(BOOKED)


@dataclass(frozen=True, slots=True)
class Settlement:
    """One task of a `settle` batch; the fields are those of `lua/settle.lua`."""

    n: int
    entry: bytes
    verb: str
    stored: bytes = b""
    detail: str = ""
    error: str = ""
    tally: str = ""
    duration_us: int = -1
    latency_ms: int = -1
    window: str = ""
    unique: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    """What an outcome means for the bytes and the totals; `name` is the outcome as metrics call it."""

    verb: str
    name: str
    stored: bytes = b""
    detail: str = ""
    error: str = ""
    tally: tuple[str, ...] = ()


def settlement(held: Claimed, outcome: Outcome, duration: float | None) -> Settlement:
    """Return what to write for `outcome`; `duration` is the seconds the job ran, None when it did not run."""
    write = _write(held, outcome)
    kind, task = held.kind, held.task
    # The first word is the type, the others are fields of the totals.
    tally = [kind, f"tasks:{write.name}:{kind}", *write.tally]
    duration_us = latency_ms = -1
    if duration is not None:
        duration_us = int(duration * 1e6)
        tally.append(f"duration:{duration_bucket(duration)}:{kind}")
        if task is not None and task.enqueued_at_ms and _first_attempt(task):
            latency_ms = max(0, held.claimed_ms - task.enqueued_at_ms)
            tally.append(f"latency:{latency_bucket(latency_ms / 1000)}")
    return Settlement(
        held.n,
        held.entry,
        write.verb,
        stored=write.stored,
        detail=write.detail,
        error=write.error,
        tally=" ".join(tally),
        duration_us=duration_us,
        latency_ms=latency_ms,
        # Only what was not started gives its queue-wide permit back.
        window=held.window if duration is None else "",
        unique=(task.unique_key, task.id) if write.verb == "ack" and task is not None and task.unique_key else None,
    )


def _write(held: Claimed, outcome: Outcome) -> _Write:
    match outcome:
        case Ack():
            return _Write("ack", "succeeded")
        case Retry():
            return _retry(held, outcome)
        case Release():
            return _release(held, outcome)
        case Dead():
            return _dead(held, outcome)


def _retry(held: Claimed, outcome: Retry) -> _Write:
    changed = _changed(held, lambda new: _failed(new, outcome.error))
    # The process survived it: the crash digit begins anew.
    return _Write("schedule", "retried", stored(0, changed), _ms(outcome.after), tally=(f"failed:{held.kind}",))


def _release(held: Claimed, outcome: Release) -> _Write:
    tally = (f"released:{outcome.reason}",)
    if outcome.after <= 0 and not outcome.counted:
        return _Write("return", "released", tally=tally)
    changed = _changed(held, lambda new: _count(new, outcome.counted), booked=outcome.reason == "limit")
    if outcome.after > 0:
        return _Write("schedule", "released", stored(held.digit, changed), _ms(outcome.after), tally=tally)
    return _Write("return", "released", changed if held.n == 0 else stored(held.digit, changed), tally=tally)


def _dead(held: Claimed, outcome: Dead) -> _Write:
    reason, error = outcome.reason, outcome.error[:MAX_ERROR]
    match reason:
        case "expired":
            return _Write("dead", "expired", detail=reason, error=error)
        case "failed":
            changed = _changed(held, lambda new: _failed(new, error))
            return _Write("dead", "dead", changed, reason, error, (f"failed:{held.kind}",))
        case "interrupted":
            changed = _changed(held, lambda new: _count(new, "interruptions"))
        case "unroutable":
            changed = _changed(held, lambda new: _count(new, "unroutable"))
        case _:
            # Undecodable, oversize: byte for byte.
            changed = b""
    return _Write("dead", "dead", changed, reason, error)


def reset(raw: bytes, task: Task | None) -> bytes:
    """Return the bytes of a dead letter that is put back: counters at zero; as they are if they are no task."""
    if task is None:
        return raw
    new = _copy(task)
    new.failures = new.interruptions = new.unroutable = 0
    new.last_error = ""
    new.requeue_nonce = ""
    return new.SerializeToString()


def _first_attempt(task: Task) -> bool:
    return not (task.failures or task.interruptions or task.unroutable)


def _changed(held: Claimed, change: Callable[[Task], None], *, booked: bool = False) -> bytes:
    if held.task is None:
        return held.raw
    new = _copy(held.task)
    change(new)
    new.id = new.id or new_id()
    # Members of a sorted set must differ, or two identical tasks would become one.
    new.requeue_nonce = (BOOKED if booked else "") + secrets.token_hex(8)
    return new.SerializeToString()


def _copy(task: Task) -> Task:
    new = Task()
    new.CopyFrom(task)
    return new


def _failed(task: Task, error: str) -> None:
    task.failures = min(task.failures + 1, 2**32 - 1)
    task.last_error = error[:MAX_ERROR]


def _count(task: Task, counted: str) -> None:
    if counted:
        setattr(task, counted, min(getattr(task, counted) + 1, 2**32 - 1))


def _ms(seconds: float) -> str:
    return str(max(1, math.ceil(seconds * 1000)))
