"""From samples to prometheus_client's families, by way of a custom collector.

Counters are absolute values out of Redis, not increments of this process, so they are monotonic over runs
that live for seconds, overlap and crash; and there is no `_created` series, which would claim otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from taskbatch.metrics.names import FAMILIES, Family
from taskbatch.metrics.projection import Histogram, Sample, project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from taskbatch.metrics.snapshot import Snapshot


class SnapshotCollector(Collector):
    """Collects what was read of one or more queues; a family without a series is left out."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._samples = [sample for snapshot in snapshots for sample in project(snapshot)]

    def collect(self) -> Iterator[Metric]:
        """Yield the families in the order of the table of names."""
        for family in FAMILIES:
            samples = [sample for sample in self._samples if sample.family is family]
            if samples:
                yield _metric(family, samples)


def registry(snapshots: Sequence[Snapshot]) -> CollectorRegistry:
    """Return a registry of its own: the process-wide one would add figures of this short-lived process."""
    private = CollectorRegistry(auto_describe=False)
    private.register(SnapshotCollector(snapshots))
    return private


def _metric(family: Family, samples: Sequence[Sample]) -> Metric:
    match family.kind:
        case "counter":
            counter = CounterMetricFamily(family.name, family.help, labels=family.labels)
            for sample in samples:
                counter.add_metric(sample.labels, _number(sample))
            return counter
        case "gauge":
            gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
            for sample in samples:
                gauge.add_metric(sample.labels, _number(sample))
            return gauge
        case "histogram":
            histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
            for sample in samples:
                value = _buckets(sample)
                histogram.add_metric(sample.labels, value.buckets, value.sum)
            return histogram


def _number(sample: Sample) -> float:
    assert not isinstance(sample.value, Histogram)  # noqa: S101 - what projection.project promises
    return sample.value


def _buckets(sample: Sample) -> Histogram:
    assert isinstance(sample.value, Histogram)  # noqa: S101 - what projection.project promises
    return sample.value
