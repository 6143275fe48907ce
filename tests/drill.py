"""Jobs for tests that start the program: what they do, they note in a ledger that no crash can take back.

The ledger is the file $DRILL_LEDGER: one line a start and one an end, appended by a single write each.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import redis

from taskbatch import RateLimit, Task, job


def enter(text: str) -> None:
    """Append one line to the ledger."""
    ledger = os.open(os.environ["DRILL_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{text}\n".encode())
    os.close(ledger)


@job("count")
def count(task: Task) -> None:
    """Note the start, and that is all."""
    enter(f"start {task.id}")


@job("nap")
def nap(payload: float, task: Task) -> None:
    """Take some seconds."""
    enter(f"start {task.id}")
    time.sleep(payload)
    enter(f"end {task.id}")


@job("hold", timeout=60)
def hold(payload: str, task: Task) -> None:
    """Take until the file `payload` exists."""
    enter(f"start {task.id}")
    while not Path(payload).exists():
        time.sleep(0.01)
    enter(f"end {task.id}")


@job("block", timeout=60)
def block(payload: float, task: Task) -> None:
    """Sit in C code, where nothing can be raised."""
    enter(f"start {task.id}")
    time.sleep(payload)


@job("kill")
def kill(task: Task) -> None:
    """Take the whole process along, as a segmentation fault does."""
    enter(f"start {task.id}")
    os.kill(os.getpid(), signal.SIGKILL)


def server_ms() -> int:
    """Return the time of Redis in ms: limits are kept by it, not by this machine's clock."""
    if not _client:
        _client.append(redis.Redis.from_url(os.environ["TASKBATCH_REDIS_URL"], protocol=2))
    seconds, micros = _client[0].time()
    return int(seconds) * 1000 + int(micros) // 1000


_client: list[redis.Redis] = []


@job("limited", rate_limit=RateLimit("50/1s"))
def limited(task: Task) -> None:
    """At most 50 in each second of the clock."""
    enter(f"limited {task.id} {server_ms()}")


@job("smooth", rate_limit=RateLimit("50/1s", algorithm="gcra", burst=5))
def smooth(task: Task) -> None:
    """At most 50 a second and 5 at once."""
    enter(f"smooth {task.id} {server_ms()}")


@job("free")
def free(task: Task) -> None:
    """Run without a limit."""
    enter(f"free {task.id} {server_ms()}")
