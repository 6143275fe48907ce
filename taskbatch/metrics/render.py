"""The metrics as text, in the exposition format every Prometheus and Pushgateway reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import generate_latest

from taskbatch.metrics.collector import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.metrics.snapshot import Snapshot


def render(snapshots: Sequence[Snapshot]) -> bytes:
    """Return the metrics of the given queues (each at most once) as UTF-8 text, format 0.0.4."""
    return generate_latest(registry(snapshots))
