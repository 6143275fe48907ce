"""A task's bytes: reading them, and the stored form with its crash digit.

Bytes are settled exactly as they were received; only a task that goes back changed (a retry, an
interruption) is encoded anew. Unknown fields of a newer producer survive that.
"""

from __future__ import annotations

import secrets

from google.protobuf.message import DecodeError

from taskbatch.v1.task_pb2 import Task

__all__ = ["MAX_TASK_BYTES", "Task", "bare", "new_id", "parse", "stored"]

MAX_TASK_BYTES = 1024 * 1024 + 16 * 1024
"""Largest task that is parsed, in bytes: a payload of 1 MiB and room for the other fields."""


def parse(raw: bytes) -> Task | None:
    """Return the task in `raw`, or None when it cannot be one: too large to look into, damaged, or without a type.

    Empty and many damaged inputs are valid protobuf, hence the check of the type.
    """
    if len(raw) > MAX_TASK_BYTES:
        return None
    try:
        task = Task.FromString(raw)
    except (DecodeError, RecursionError, ValueError):
        return None
    return task if task.type else None


def new_id() -> str:
    """Return a random id of 128 bits; it differs early from any other, so comparing two tasks ends early."""
    return secrets.token_hex(16)


def stored(digit: int, raw: bytes) -> bytes:
    """Return the form a task has outside `pending`: how many runs died holding it, then its bytes."""
    return b"%d" % min(digit, 9) + raw


def bare(entry: bytes) -> tuple[int, bytes]:
    """Split a stored entry into its crash digit and the task's bytes; a foreign first byte counts as 0."""
    digit = entry[:1]
    return (int(digit), entry[1:]) if digit.isdigit() else (0, entry)
