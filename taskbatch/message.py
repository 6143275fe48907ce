"""What a producer puts on the wire: checked, within its limits, serialized. Pure, no I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from taskbatch.checks import check_name, is_positive, refuse
from taskbatch.errors import PayloadTooLargeError
from taskbatch.keys import Keys
from taskbatch.payload import encode
from taskbatch.task import MAX_TASK_BYTES, Task, new_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskbatch.declaration import Job

MAX_PAYLOAD = 1024 * 1024
"""Largest payload in bytes that a run accepts."""

MAX_AROUND = MAX_TASK_BYTES - MAX_PAYLOAD
"""Most bytes all other fields of a task may take together: type, headers, keys."""

MAX_WORD = 128
"""Most bytes of an id, a limit key and a content type."""

MAX_UNIQUE_KEY = 1024
"""Most bytes of a deduplication key."""

_UINT32 = 2**32


@dataclass(frozen=True, slots=True)
class Item:
    """One task to enqueue. Raises ConfigError for a field that cannot be.

    `type`          name of the job that is to run it, or the Job itself
    `payload`       what JSON holds, str, bytes, a dataclass or a protobuf message
    `delay`         seconds from now, by the server's clock, before it may be claimed; 0 = at once
    `expires`       seconds from now after which it is dead-lettered instead of run; None = never
    `unique_key`    nothing is enqueued while another task holds this key of the queue: until that task is
                    acked, and for `unique_ttl` seconds at most
    `limit_key`     which count of the job's rate limit it takes (a tenant, an API key), at most 128 bytes
    `max_attempts`  how often it may fail before it is dead-lettered; 0 = as the job says
    `headers`       text for the job or for tracing, such as {"traceparent": …}
    `id`            unique name of the task; None = a random one
    `content_type`  how a payload given as bytes or str is encoded; None = what fits its Python type
    """

    type: str | Job
    payload: Any = None
    queue: str = "default"
    delay: float = 0.0
    expires: float | None = None
    unique_key: str | None = None
    unique_ttl: float = 3600.0
    limit_key: str = ""
    max_attempts: int = 0
    headers: Mapping[str, str] | None = None
    id: str | None = None
    content_type: str | None = None

    def __post_init__(self) -> None:
        check_name("task type", self.name)
        if self.delay and not is_positive(self.delay):
            refuse(f"delay is a number of seconds from 0, not {self.delay!r}")
        if self.expires is not None and not is_positive(self.expires):
            refuse(f"expires is a number of seconds above 0, not {self.expires!r}")
        if not is_positive(self.unique_ttl):
            refuse(f"unique_ttl is a number of seconds above 0, not {self.unique_ttl!r}")
        if type(self.max_attempts) is not int or not 0 <= self.max_attempts < _UINT32:
            refuse(f"max_attempts is a whole number from 0 (as the job says), not {self.max_attempts!r}")
        for what, text, most in (
            ("id", self.id, MAX_WORD),
            ("unique_key", self.unique_key, MAX_UNIQUE_KEY),
            ("limit_key", self.limit_key or None, MAX_WORD),
            ("content_type", self.content_type, MAX_WORD),
        ):
            if text is not None:
                _check_text(what, text, most)
        for name, value in (self.headers or {}).items():
            if not (name and all(isinstance(word, str) for word in (name, value))):
                refuse(f"headers are text by name, not {str(name)[:60]!r}: a {type(value).__name__}")

    @property
    def name(self) -> str:
        """Name of the job that is to run it."""
        return self.type if isinstance(self.type, str) else str(getattr(self.type, "name", ""))

    @property
    def scripted(self) -> bool:
        """Whether one LPUSH is not enough to enqueue it."""
        return self.delay > 0 or self.unique_key is not None


class Template:
    """Makes the messages of tasks that differ only in payload and id; what they share is checked once."""

    def __init__(self, item: Item, prefix: str, max_payload: int) -> None:
        """Raise ConfigError for a queue name that cannot be, PayloadTooLargeError for huge headers."""
        self.item = item
        self._max_payload = max_payload
        self.keys = Keys(prefix, item.queue)
        self.pending = self.keys.pending
        try:
            self._task = Task(
                type=item.name,
                limit_key=item.limit_key,
                max_attempts=item.max_attempts,
                unique_key=item.unique_key or "",
                headers=item.headers,
            )
        except ValueError as error:
            refuse(f"a field cannot be written as UTF-8: {error}")
        around = self._task.ByteSize()
        if around > MAX_AROUND - 4 * MAX_WORD:
            raise PayloadTooLargeError(f"type, headers and keys take {around} bytes: more than a run accepts")

    def message(self, payload: object, now_ms: int, expires_at_ms: int) -> Message:
        """Return the task with `payload`: `now_ms` by this clock, `expires_at_ms` by the server's (0 = never).

        Raises PayloadError for a value that has no encoding, PayloadTooLargeError.
        """
        encoded, content_type = encode(payload)
        if len(encoded) > self._max_payload:
            raise PayloadTooLargeError(f"a payload of {len(encoded)} bytes, more than {self._max_payload}")
        task, item = self._task, self.item
        task.id = name = item.id or new_id()
        task.payload = encoded
        task.content_type = content_type if item.content_type is None else item.content_type
        task.enqueued_at_ms = now_ms
        task.expires_at_ms = expires_at_ms
        return Message(self, name, task.SerializeToString())


class Message(NamedTuple):
    """A task ready to be sent, and the template it was made from."""

    template: Template
    id: str
    raw: bytes


def milliseconds(seconds: float) -> int:
    """Return whole milliseconds, rounded up: never earlier than asked for, and never 0 for more than 0."""
    return math.ceil(seconds * 1000)


def _check_text(what: str, text: object, most: int) -> None:
    if not isinstance(text, str) or not text:
        refuse(f"{what} is a text that is not empty, not {str(text)[:60]!r}")
    if not text.isprintable():
        refuse(f"{what} {text[:60]!r} holds characters that cannot be printed")
    if len(text.encode("utf-8", "surrogatepass")) > most:
        refuse(f"{what} {text[:60]!r}… is longer than {most} bytes")
