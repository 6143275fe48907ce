"""From a snapshot to samples: which series there are, and their values. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from taskbatch.metrics import names
from taskbatch.policy import DURATION_BUCKETS, LATENCY_BUCKETS, le

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskbatch.metrics.names import Family
    from taskbatch.metrics.snapshot import Snapshot

MAX_TYPES = 500
"""Most job types of one queue that get series of their own; the others share `unknown`."""

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts by the text of their upper bound, +Inf last, and the sum in seconds."""

    buckets: tuple[tuple[str, int], ...]
    sum: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One series: label values in the order of the family's labels, and its value."""

    family: Family
    labels: tuple[str, ...]
    value: float | Histogram


def project(snapshot: Snapshot) -> Iterator[Sample]:
    """Yield every series of a queue. What is known beforehand starts at 0, so that a rate sees the first."""
    queue, totals = snapshot.queue, snapshot.totals
    yield from _tasks(queue, totals)
    yield Sample(names.CLAIMED, (queue,), totals.get("claimed", 0))
    yield from _counted(names.REAPED, queue, totals, "reaped:", names.ACTIONS)
    yield from _counted(names.RUNS, queue, totals, "runs:", names.RESULTS)
    yield from _durations(queue, totals)
    yield _latency(queue, totals)
    for state in names.STATES:
        yield Sample(names.QUEUE_TASKS, (queue, state), snapshot.states.get(state, 0))
    yield Sample(names.PAUSED, (queue,), int(snapshot.paused))
    if snapshot.oldest_pending_ms is not None:
        yield Sample(names.OLDEST_PENDING, (queue,), snapshot.oldest_pending_ms / 1000)
    yield from _scaled(names.LAST_RUN, queue, totals, "last_run_ms", 1000)
    yield from _scaled(names.LAST_SUCCESS, queue, totals, "last_success_ms", 1000)
    yield from _scaled(names.LAST_DURATION, queue, totals, "last_run_duration_us", 1_000_000)
    yield Sample(names.BUILD_INFO, (queue, snapshot.version), 1)


def _tasks(queue: str, totals: Mapping[str, int]) -> Iterator[Sample]:
    label = _type_labels(totals)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for outcome, job_type, count in _pairs(totals, "tasks:"):
        for known in names.OUTCOMES:
            counts[label[job_type], known] += 0
        counts[label[job_type], outcome] += count
    for (job_type, outcome), count in counts.items():
        yield Sample(names.TASKS, (queue, job_type, outcome), count)


def _counted(
    family: Family, queue: str, totals: Mapping[str, int], head: str, known: tuple[str, ...]
) -> Iterator[Sample]:
    counts = dict.fromkeys(known, 0) | dict(_singles(totals, head))
    for value, count in counts.items():
        yield Sample(family, (queue, value), count)


def _durations(queue: str, totals: Mapping[str, int]) -> Iterator[Sample]:
    label = _type_labels(totals)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    sums: dict[str, int] = defaultdict(int)
    for bound, job_type, count in _pairs(totals, "duration:"):
        counts[label[job_type]][bound] += count
    for job_type, total in _singles(totals, "duration_sum_us:"):
        sums[label[job_type]] += total
    for job_type, by_bound in counts.items():
        histogram = _histogram(DURATION_BUCKETS, by_bound, sums[job_type] / 1_000_000)
        yield Sample(names.DURATION, (queue, job_type), histogram)


def _latency(queue: str, totals: Mapping[str, int]) -> Sample:
    by_bound = dict(_singles(totals, "latency:"))
    histogram = _histogram(LATENCY_BUCKETS, by_bound, totals.get("latency_sum_ms", 0) / 1000)
    return Sample(names.LATENCY, (queue,), histogram)


def _histogram(bounds: tuple[float, ...], by_bound: Mapping[str, int], total: float) -> Histogram:
    """Sum up what the totals keep apart. A bound of another release counts in the next wider one of ours."""
    counts = [0] * (len(bounds) + 1)
    for text, count in by_bound.items():
        counts[bisect_left(bounds, _bound(text))] += count
    return Histogram(tuple(zip((*map(le, bounds), "+Inf"), accumulate(counts), strict=True)), total)


def _bound(text: str) -> float:
    try:
        bound = float(text)
    except ValueError:
        return math.inf
    return math.inf if math.isnan(bound) else bound


def _scaled(family: Family, queue: str, totals: Mapping[str, int], field: str, unit: int) -> Iterator[Sample]:
    if field in totals:
        yield Sample(family, (queue,), totals[field] / unit)


def _type_labels(totals: Mapping[str, int]) -> dict[str, str]:
    """Return the label of every type in the totals.

    Which types keep their name must never make a counter go back: the first in the alphabet do, so one
    that was folded into `unknown` stays there, whatever comes later.
    """
    types = {job_type for _, job_type, _ in _pairs(totals, "tasks:")}
    types |= {job_type for _, job_type, _ in _pairs(totals, "duration:")}
    types |= {job_type for job_type, _ in _singles(totals, "duration_sum_us:")}
    clean = {job_type: _clean(job_type) for job_type in types}
    kept = set(sorted(set(clean.values()) - {UNKNOWN})[:MAX_TYPES])
    return {job_type: label if label in kept else UNKNOWN for job_type, label in clean.items()}


def _clean(job_type: str) -> str:
    """Return a type as a label value: valid UTF-8, and not empty, which would mean no label."""
    return job_type.encode("utf-8", "replace").decode() or UNKNOWN


def _singles(totals: Mapping[str, int], head: str) -> Iterator[tuple[str, int]]:
    """Yield what follows `head` in each field that begins with it, and the count."""
    for field, count in totals.items():
        if field.startswith(head):
            yield field.removeprefix(head), count


def _pairs(totals: Mapping[str, int], head: str) -> Iterator[tuple[str, str, int]]:
    """Yield the two names that follow `head`. The second is a type, which may contain colons itself."""
    for rest, count in _singles(totals, head):
        first, colon, job_type = rest.partition(":")
        if colon:
            yield first, job_type, count
