"""What the demo enqueues, how, and what is said about each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

GREETINGS = 20
LIMITED = 6
LIST = "names.ndjson"
CALLS = "calls.ndjson"

GARBAGE = b"not a task"
"""No protobuf: its first byte announces a kind of field that does not exist."""

FILES = {
    LIST: "".join(json.dumps({"name": f"guest {n}"}) + "\n" for n in range(1, GREETINGS + 1)),
    CALLS: "".join(json.dumps({"call": n}) + "\n" for n in range(1, LIMITED + 1)),
}
"""Payloads, one a line, by the name of the file they are in."""


@dataclass(frozen=True)
class Typed:
    """What a person types: the words after `taskbatch enqueue`, and the file it reads. `says`: what it is."""

    says: str
    words: tuple[str, ...]
    reads: str | None = None


@dataclass(frozen=True)
class Called:
    """What a program does: `client.enqueue(kind, payload)`. `says`: what it is."""

    says: str
    kind: str
    payload: dict[str, Any]


ORDERS = (
    Typed(f"{GREETINGS} good ones, one a line of a file", ("demo.hello", "-"), LIST),
    Typed(f"{LIMITED} calls of a service that allows 2 in 4 seconds", ("demo.limited", "-"), CALLS),
    Typed("one for later", ("demo.hello", '{"name": "late guest"}', "--delay", "3s")),
    Called("from Python, one that fails twice, then succeeds", "demo.flaky", {"fails": 2}),
    Called("one that always fails", "demo.broken", {"customer": 7}),
    Called("one of a type that nobody knows", "demo.unheard-of", {}),
    Called("one that takes a minute and may take a second", "demo.slow", {"seconds": 60}),
    Called("one that kills the process it runs in, the first time", "demo.killer", {"marker": "killed-once"}),
)
"""In the order they are enqueued; the oldest is claimed first, so the killer comes last."""
