"""Tasks to be measured with, put into the queue as a plain producer would."""

from __future__ import annotations

import json
import time
import uuid
from itertools import islice
from typing import TYPE_CHECKING

from taskbatch.v1.task_pb2 import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

PENDING = "taskbatch:{default}:pending"
CHUNK = 1000

NOOP = json.dumps({"text": "x" * 88}).encode()
"""A payload of 100 bytes."""

REST = json.dumps({"seconds": 0.01}).encode()


def tasks(count: int, kind: str, payload: bytes) -> Iterator[bytes]:
    """Yield `count` new tasks as they stand on the wire."""
    for _ in range(count):
        now = int(time.time() * 1000)
        yield Task(id=uuid.uuid4().hex, type=kind, payload=payload, enqueued_at_ms=now).SerializeToString()


def fill(client: redis.Redis, count: int, kind: str, payload: bytes) -> None:
    """Empty the database and put `count` tasks into the queue."""
    client.flushall()
    new = tasks(count, kind, payload)
    while chunk := list(islice(new, CHUNK)):
        client.lpush(PENDING, *chunk)
