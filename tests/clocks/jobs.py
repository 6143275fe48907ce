"""Jobs for runs whose clock is wrong. They wait without sleep(), which libfaketime gets wrong by as much."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from taskbatch import Backoff, RateLimit, Task, job


def enter(text: str) -> None:
    """Append one line to the ledger."""
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{text}\n".encode())
    os.close(ledger)


@job("nap", timeout=30)
def nap(payload: float, task: Task) -> None:
    """Take some seconds."""
    enter(f"start {task.id}")
    threading.Event().wait(payload)


@job("hold", timeout=60)
def hold(payload: str, task: Task) -> None:
    """Take until the file `payload` exists."""
    enter(f"start {task.id}")
    while not Path(payload).exists():
        threading.Event().wait(0.02)


@job("fail", backoff=Backoff(base=100.0))
def fail(task: Task) -> None:
    """Fail."""
    enter(f"start {task.id}")
    raise ValueError(task.id)


@job("few", rate_limit=RateLimit("3/1h", algorithm="gcra", burst=3))
def few(task: Task) -> None:
    """Three an hour."""
    enter(f"start {task.id}")
