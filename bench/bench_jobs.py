"""The jobs that are measured: one does nothing, one rests."""

from __future__ import annotations

import time

from taskbatch import job


@job("bench.noop")
def noop(payload: dict[str, str]) -> None:
    """Do nothing."""


@job("bench.rest")
def rest(payload: dict[str, float]) -> None:
    """Rest as long as the payload says."""
    time.sleep(payload["seconds"])
