"""The decisions: pure functions from what happened to what is to be done."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from taskbatch.outcome import Ack, Dead, Outcome, Release, Retry

if TYPE_CHECKING:
    import random

    from taskbatch.declaration import Job
    from taskbatch.invocation import Result
    from taskbatch.task import Task

MAX_INTERRUPTIONS = 20
MAX_UNROUTABLE = 20
UNROUTABLE_BASE = 5.0
UNROUTABLE_MAX = 3600.0
MIN_RETRY = 1.0

DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds, in seconds, of the histogram of job durations. Frozen: they are names of totals."""

LATENCY_BUCKETS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""Upper bounds, in seconds, of the histogram of the time from enqueue to the first claim. Frozen."""


def le(bound: float) -> str:
    """Return the text of a bucket's upper bound as Prometheus and the totals spell it."""
    return f"{bound:g}"


_DURATION_LES = (*map(le, DURATION_BUCKETS), "+Inf")
_LATENCY_LES = (*map(le, LATENCY_BUCKETS), "+Inf")


def duration_bucket(seconds: float) -> str:
    """Return the upper bound of the bucket a job's duration falls into."""
    return _DURATION_LES[bisect_left(DURATION_BUCKETS, seconds)]


def latency_bucket(seconds: float) -> str:
    """Return the upper bound of the bucket a queue latency falls into."""
    return _LATENCY_LES[bisect_left(LATENCY_BUCKETS, seconds)]


def retry_delay(failures: int, *, base: float, maximum: float, rng: random.Random) -> float:
    """Return the seconds before the next attempt: exponential with full jitter, at least 1 s.

    `failures` is the number of failed attempts so far, from 1. The exponent is capped before it is
    used, so a task with an absurd counter cannot overflow.
    """
    ceiling = min(maximum, base * 2.0 ** min(max(failures - 1, 0), 32))
    return max(MIN_RETRY, rng.uniform(0.0, ceiling))


def unroutable_delay(times: int) -> float:
    """Return the seconds a task of unknown type rests before its next look: 5 s doubling to 1 h."""
    return min(UNROUTABLE_MAX, UNROUTABLE_BASE * 2.0 ** min(times, 32))


def decide(task: Task, job: Job, result: Result, rng: random.Random) -> Outcome:
    """Return what the result of an invocation leads to."""
    if result.ok:
        return Ack()
    if result.permanent:
        return Dead("failed", result.error)
    attempts = task.failures + 1
    if attempts >= (task.max_attempts or job.max_attempts):
        return Dead("failed", result.error)
    delay = retry_delay(attempts, base=job.backoff.base, maximum=job.backoff.maximum, rng=rng)
    return Retry(delay, result.error)


def decide_interrupted(task: Task) -> Outcome:
    """Return the outcome for a task that still ran when the run had to leave: no attempt, the 20th time dead."""
    if task.interruptions + 1 >= MAX_INTERRUPTIONS:
        return Dead("interrupted", f"interrupted {task.interruptions + 1} times")
    return Release(0.0, "shutdown", counted="interruptions")


def decide_unroutable(task: Task) -> Outcome:
    """Return the outcome for a task whose type this run does not know: later, the 20th time dead."""
    if task.unroutable + 1 >= MAX_UNROUTABLE:
        return Dead("unroutable", f"no job for this type in {task.unroutable + 1} runs")
    return Release(unroutable_delay(task.unroutable), "unknown", counted="unroutable")
