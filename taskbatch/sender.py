"""The producer's Redis edge: messages go out, what became of each comes back. Nothing is sent twice."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from taskbatch.connect import Link, checked
from taskbatch.errors import DoubtError, TaskbatchError, UnreachableError
from taskbatch.keys import queue_names
from taskbatch.message import Message, milliseconds
from taskbatch.scripts import Call, Scripts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.settings import RedisSettings

IDLE = 1.0
"""Seconds of silence after which a connection may have been closed by the other side."""


class Enqueued(NamedTuple):
    """The task that is on the queue: the new one, or, if `duplicate`, the one that holds the unique key."""

    id: str
    duplicate: bool = False

    def __str__(self) -> str:
        return self.id


class Sender:
    """One connection, opened when first used. Threads take turns; a forked child opens its own."""

    def __init__(self, settings: RedisSettings, prefix: str) -> None:
        self._link = Link(settings)
        self._scripts = Scripts(self._link)
        self._names = queue_names(prefix)
        self._lock = threading.Lock()
        self._announced: set[str] = set()
        self._used: float | None = None
        self._process = os.getpid()

    def send(self, messages: Sequence[Message]) -> list[Enqueued | TaskbatchError]:
        """Send all in one round trip and return for each what became of it; an error means it was refused.

        Raises UnreachableError or ConfigError when nothing was sent, DoubtError when the replies were lost.
        """
        with self._lock:
            self._wake()
            # Few templates, many messages: what can be asked of a template is not asked of every message.
            templates = {message.template for message in messages}
            scripted = any(template.item.scripted for template in templates)
            answers = self._scripted(messages) if scripted else self._pushed(messages)
            # A queue that took nothing is not one to be listed.
            taken = {message.template for message, answer in zip(messages, answers, strict=True)
                     if isinstance(answer, Enqueued)}  # fmt: skip
            self._announce({template.item.queue for template in taken})
            self._used = time.monotonic()
            return answers

    def now_ms(self) -> int:
        """Return the server's time; a reply that is lost is no doubt here: nothing was enqueued."""
        with self._lock:
            self._wake()
            try:
                seconds, micros = self._link.call("TIME")
            except DoubtError as error:
                raise UnreachableError(f"nothing was enqueued: {error}") from error
            return int(seconds) * 1000 + int(micros) // 1000

    def close(self) -> None:
        """Close the connection; it opens again when used."""
        with self._lock:
            self._link.close()
            self._used = None

    def _pushed(self, messages: Sequence[Message]) -> list[Enqueued | TaskbatchError]:
        batches: dict[str, list[Any]] = {}
        for message in messages:
            batches.setdefault(message.template.pending, []).append(message.raw)
        replies = self._link.exchange([("LPUSH", pending, *batch) for pending, batch in batches.items()])
        errors = dict(zip(batches, map(_error, replies), strict=True))
        return [errors[message.template.pending] or Enqueued(message.id) for message in messages]

    def _scripted(self, messages: Sequence[Message]) -> list[Enqueued | TaskbatchError]:
        # All of them, also those that need no script: one round trip, and their order is kept.
        replies = self._scripts.exchange([_call(message) for message in messages])
        return [_error(reply) or Enqueued(reply[1].decode(), duplicate=not reply[0]) for reply in replies]

    def _announce(self, queues: set[str]) -> None:
        # The set is for people who list queues, lives in another slot, and may be forbidden to a producer.
        for queue in queues - self._announced:
            self._announced.add(queue)
            with suppress(TaskbatchError):
                self._link.call("SADD", self._names, queue)

    def _wake(self) -> None:
        if self._process != os.getpid():
            # The parent goes on using the connection it has; only our copy of it is closed.
            self._link.close()
            self._process, self._used = os.getpid(), None
        if self._used is not None and time.monotonic() - self._used > IDLE:
            # Better to lose the reply to this than to a push: that would leave the caller in doubt.
            with suppress(TaskbatchError):
                self._link.call("PING")


def _call(message: Message) -> Call:
    template = message.template
    keys, item = template.keys, template.item
    touched = [keys.pending, keys.scheduled]
    if item.unique_key is not None:
        touched.append(keys.unique(item.unique_key))
    return Call(
        "enqueue",
        touched,
        [message.raw, milliseconds(item.delay), message.id, milliseconds(item.unique_ttl)],
    )


def _error(reply: object) -> TaskbatchError | None:
    try:
        checked(reply)
    except TaskbatchError as error:
        return error
    return None
