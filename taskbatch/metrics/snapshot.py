"""What the metrics of one queue are made from: plain values, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One queue as it was read from Redis.

    `totals` is the decoded totals hash (field to count since for ever), `states` how many tasks are in
    each place (a missing one counts as 0), `oldest_pending_ms` when the task that is next was enqueued
    (Unix ms; None: there is none, or its producer did not say), `version` that of this taskbatch.
    """

    queue: str
    totals: Mapping[str, int]
    states: Mapping[str, int]
    paused: bool
    oldest_pending_ms: int | None
    version: str
