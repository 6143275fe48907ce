"""The tasks that the machines enqueue, how one is told from another, and where each of them has gone."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from taskbatch.declaration import Backoff, Job
from taskbatch.task import Task, parse
from tests.lua.keyspace import raw, text

HOUR = 3600.0
MAX_ATTEMPTS = 3
KNOWN = "note"
JOB = Job(
    KNOWN, lambda: None, timeout=60.0, timeout_declared=True, max_attempts=MAX_ATTEMPTS, backoff=Backoff(HOUR, 2 * HOUR)
)
JOBS = {KNOWN: JOB}

DAMAGE = (b"", b"\xff\xff", b"7", b"1\x08", b"\x0a\x00", b"4 not protobuf at all")


class Longest(random.Random):
    """Draws the longest delay, so that no task falls due by itself while a test goes on."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002 - as random names them
        return b


def make(number: int, *, id: str, kind: str = KNOWN, unique: str = "", worn: bool = False, known: bool = True) -> bytes:  # noqa: A002 - the field's name
    """Return a task; `worn`: every counter is near its bound; `known`: since when it waits."""
    task = Task(id=id, type=kind, payload=b"%d" % number, enqueued_at_ms=1 if known else 0, unique_key=unique)
    task.headers["number"] = str(number)
    if worn:
        task.failures = MAX_ATTEMPTS - 1
        task.interruptions = task.unroutable = 18
    return task.SerializeToString(deterministic=True)


@lru_cache(maxsize=10_000)
def token(task: str) -> str:
    """Return what stays the same of a task whatever happens to it; twins have the same one."""
    parsed = parse(raw(task))
    if parsed is None:
        return "damaged " + task
    unchanged = [parsed.type, text(parsed.payload), parsed.headers["number"], parsed.enqueued_at_ms, parsed.unique_key]
    return f"{unchanged}"


@dataclass
class Ledger:
    """How often a task with this token was accepted, was done, and was deleted by a person."""

    accepted: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
