"""What becomes of a task that was just claimed: run it, or settle it without running. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskbatch.outcome import Dead, Outcome, Release
from taskbatch.policy import decide_unroutable
from taskbatch.settlement import Claimed
from taskbatch.task import MAX_TASK_BYTES, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskbatch.declaration import Job


def parsed(n: int, entry: bytes, now_ms: int, window: str) -> Claimed:
    """Return one entry of own list `n` as a run holds it. Too large a task is not even looked into."""
    held = Claimed(n, entry, None, claimed_ms=now_ms, window=window)
    if len(entry) <= MAX_TASK_BYTES:
        held.task = parse(held.raw)
    return held


def admit(held: Claimed, jobs: Mapping[str, Job], now_ms: int, time_left: float | None) -> Job | Outcome:
    """Return the job that is to run the task, or the outcome of a task that is not to run.

    `time_left` is what remains of the run's time budget and grace, in seconds; None = no bound.
    """
    if len(held.entry) > MAX_TASK_BYTES:
        return Dead("oversize", f"{len(held.raw)} bytes; at most {MAX_TASK_BYTES} are run")
    task = held.task
    if task is None:
        return Dead("undecodable", "not a taskbatch.v1.Task, or without a type")
    job = jobs.get(task.type)
    if job is not None:
        held.kind = job.name
    if 0 < task.expires_at_ms <= now_ms:
        return Dead("expired", f"expired {(now_ms - task.expires_at_ms) / 1000:.3f} s before it was claimed")
    if job is None:
        return decide_unroutable(task)
    if time_left is not None and job.timeout_declared and job.timeout > time_left:
        # Back when this run is over: at once, it would only claim it again.
        return Release(max(0.001, time_left), "no_time")
    return job
