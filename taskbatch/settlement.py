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
        return self.entry if self.n == 0 else self.entry[1:]

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


def settlement(held: Claimed, outcome: Outcome, duration: float | None) -> Settlement:
    """Return what to write for `outcome`; `duration` is the seconds the job ran, None when it did not run."""
    task, kind = held.task, held.kind
    tally = [kind]
    latency_ms = -1
    duration_us = -1
    if duration is not None:
        duration_us = int(duration * 1e6)
        tally.append(f"duration:{duration_bucket(duration)}:{kind}")
        if task is not None and task.enqueued_at_ms and _first_attempt(task):
            latency_ms = max(0, held.claimed_ms - task.enqueued_at_ms)
            tally.append(f"latency:{latency_bucket(latency_ms / 1000)}")

    def made(verb: str, outcome_name: str, **fields: object) -> Settlement:
        tally.append(f"tasks:{outcome_name}:{kind}")
        return Settlement(
            held.n,
            held.entry,
            verb,
            tally=" ".join(tally),
            duration_us=duration_us,
            latency_ms=latency_ms,
            window=held.window if duration is None else "",
            **fields,  # type: ignore[arg-type]
        )

    match outcome:
        case Ack():
            unique = (task.unique_key, task.id) if task is not None and task.unique_key else None
            return made("ack", "succeeded", unique=unique)
        case Retry(after, error):
            tally.append(f"failed:{kind}")
            changed = _changed(held, lambda new: _failed(new, error))
            return made("schedule", "retried", stored=stored(0, changed), detail=_ms(after))
        case Release(after, reason, counted):
            tally.append(f"released:{reason}")
            if after > 0:
                changed = _changed(held, lambda new: _count(new, counted), booked=reason == "limit")
                return made("schedule", "released", stored=stored(held.digit, changed), detail=_ms(after))
            if not counted:
                return made("return", "released")
            changed = _changed(held, lambda new: _count(new, counted))
            return made("return", "released", stored=changed if held.n == 0 else stored(held.digit, changed))
        case Dead("expired", error):
            return made("dead", "expired", detail="expired", error=error[:MAX_ERROR])
        case Dead(reason, error):
            changed = b""
            if reason == "failed":
                tally.append(f"failed:{kind}")
                changed = _changed(held, lambda new: _failed(new, error))
            elif reason in ("interrupted", "unroutable"):
                field = "interruptions" if reason == "interrupted" else "unroutable"
                changed = _changed(held, lambda new: _count(new, field))
            return made("dead", "dead", stored=changed, detail=reason, error=error[:MAX_ERROR])


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
