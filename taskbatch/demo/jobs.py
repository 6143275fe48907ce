"""The jobs of the demo, each with a trouble of its own. A job is a function for one type of task."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from taskbatch import Backoff, RateLimit, Task, job

SOON = Backoff(base=1.0, maximum=1.0)
"""A second between two attempts, so that nobody waits for long."""


@job("demo.hello")
def hello(payload: dict[str, str]) -> None:
    """Greet somebody; takes a moment."""
    assert payload["name"]  # noqa: S101 - a guest without one would be a bug of the demo
    time.sleep(0.02)


@job("demo.flaky", backoff=SOON)
def flaky(payload: dict[str, int], task: Task) -> None:
    """Fail as often as the payload says, then succeed."""
    if task.failures < payload["fails"]:
        raise ConnectionError("the line is busy")


@job("demo.broken", max_attempts=3, backoff=SOON)
def broken(payload: dict[str, object]) -> None:  # noqa: ARG001 - whatever it is, it does not help
    """Fail always."""
    raise ValueError("no such customer")


@job("demo.limited", rate_limit=RateLimit("2/4s"))
def limited(payload: dict[str, int]) -> None:
    """Call a service that takes two calls in four seconds, from all runs together."""


@job("demo.slow", timeout=1, max_attempts=2, backoff=SOON)
def slow(payload: dict[str, float]) -> None:
    """Take far longer than a second, in short steps: a timeout arrives between two of them."""
    until = time.monotonic() + payload["seconds"]
    while time.monotonic() < until:
        time.sleep(0.02)


@job("demo.killer", timeout=30)
def killer(payload: dict[str, str]) -> None:
    """Kill this process the first time, as a full memory would: no handler runs, nothing is handed back."""
    marker = Path(payload["marker"])
    if marker.exists():
        return
    marker.touch()
    # Meanwhile the run settles what its other threads have done, and has begun something slow.
    time.sleep(0.6)
    os.kill(os.getpid(), signal.SIGKILL)
