"""The producer: puts tasks on queues.

    with Client("redis://localhost:6379/0") as client:
        client.enqueue("email.send", {"to": "a@b.c"}, queue="mail", delay=60)

An error means that nothing was enqueued, or it says that this is not known: a reply was lost. Nothing is
tried again behind the caller's back, because that is how tasks are doubled; who must be sure enqueues again
with the same `unique_key`.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from taskbatch.checks import refuse
from taskbatch.connect import Link, checked
from taskbatch.errors import DoubtError, TaskbatchError
from taskbatch.keys import queue_names
from taskbatch.message import MAX_PAYLOAD, Item, Message, Template, milliseconds
from taskbatch.scripts import Call, Scripts
from taskbatch.settings import RedisSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from taskbatch.declaration import Job

__all__ = ["Client", "EnqueueError", "Enqueued", "Item"]

CHUNK_TASKS = 1000
CHUNK_BYTES = 1024 * 1024


class Enqueued(NamedTuple):
    """The task that is on the queue: the new one, or, if `duplicate`, the one that holds the unique key."""

    id: str
    duplicate: bool = False

    def __str__(self) -> str:
        return self.id


class EnqueueError(TaskbatchError):
    """Only a part was enqueued: `enqueued` are certainly in, of the ids in `unknown` that is not known."""

    def __init__(self, problem: object, enqueued: list[Enqueued], unknown: list[str]) -> None:
        text = f"{problem}; {len(enqueued)} tasks are enqueued"
        if unknown:
            text += f", of {len(unknown)} more it is not known"
        super().__init__(text)
        self.enqueued = enqueued
        self.unknown = unknown


class Client:
    """Enqueues tasks over one connection, opened when first used. Threads may share it."""

    def __init__(
        self, url: str | RedisSettings, *, prefix: str = "taskbatch", max_payload: int = MAX_PAYLOAD
    ) -> None:
        """Raise ConfigError for a URL that cannot be, or a cap above 1 MiB, which is what runs accept."""
        if not 0 < max_payload <= MAX_PAYLOAD:
            refuse(f"max_payload is from 1 to {MAX_PAYLOAD} bytes, not {max_payload!r}")
        self._link = Link(RedisSettings(url=url) if isinstance(url, str) else url)
        self._scripts = Scripts(self._link)
        self._prefix = prefix
        self._max_payload = max_payload
        self._lock = threading.Lock()
        self._announced: set[str] = set()
        self._process = os.getpid()

    @classmethod
    def from_env(cls) -> Self:
        """Return a client of TASKBATCH_REDIS_URL, else REDIS_URL, else a server on this machine."""
        url = os.environ.get("TASKBATCH_REDIS_URL") or os.environ.get("REDIS_URL") or RedisSettings().url
        return cls(url, prefix=os.environ.get("TASKBATCH_PREFIX") or "taskbatch")

    def enqueue(  # noqa: PLR0913 - the fields of an Item
        self,
        type: str | Job,  # noqa: A002 - the field's name in the wire contract
        payload: object = None,
        *,
        queue: str = "default",
        delay: float = 0.0,
        expires: float | None = None,
        unique_key: str | None = None,
        unique_ttl: float = 3600.0,
        limit_key: str = "",
        max_attempts: int = 0,
        headers: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002 - likewise
        content_type: str | None = None,
    ) -> Enqueued:
        """Enqueue one task; `Item` says what the options mean. One round trip, with `expires` two.

        Raises PayloadError or PayloadTooLargeError for the payload and ConfigError for what a person has to
        change; UnreachableError or RefusedError (the server is full, read-only, loading): nothing was enqueued;
        DoubtError: whether it was is not known.
        """
        item = Item(
            type, payload, queue, delay, expires, unique_key, unique_ttl, limit_key, max_attempts, headers, id,
            content_type,
        )  # fmt: skip
        template = Template(item, self._prefix, self._max_payload)
        message = template.message(payload, _now_ms(), self._expiry(item, _Clock(self)))
        try:
            answer = self._send([message])[0]
        except DoubtError as error:
            raise DoubtError(
                f"it is not known whether task {message.id} ({item.name}) was enqueued: {error}; "
                "enqueue it again with a unique_key if it must not run twice"
            ) from error
        return _read(message, answer)

    def enqueue_many(self, items: Iterable[Any], type: str | Job | None = None, **options: Any) -> list[Enqueued]:  # noqa: A002, ANN401
        """Enqueue all of `items`, at least 1,000 small ones a round trip, and return what became of each.

        An item is an `Item` with options of its own, or the payload of a task of `type`, to which `options`
        apply: those of `enqueue` but for unique_key and id. Order is kept. Raises what `enqueue` raises as
        long as nothing was enqueued, then EnqueueError, also for errors of the iterable itself.

        What is returned grows with the number of items; `enqueue_stream` does not.
        """
        done: list[Enqueued] = []
        try:
            done.extend(self.enqueue_stream(items, type, **options))
        except EnqueueError as error:
            raise EnqueueError(error.__cause__, done + error.enqueued, error.unknown) from error.__cause__
        except Exception as error:
            if not done:
                raise
            raise EnqueueError(error, done, []) from error
        return done

    def enqueue_stream(
        self, items: Iterable[Any], type: str | Job | None = None, **options: Any  # noqa: A002, ANN401
    ) -> Iterator[Enqueued]:
        """Yield what became of each of `items` as they are sent, chunk by chunk: memory stays flat.

        As `enqueue_many`, but nothing is sent before the result is iterated, and an EnqueueError tells of the
        last chunk only: what was yielded is enqueued.
        """
        shared = None if type is None else self._template(Item(type, **_allowed(options)))
        if shared is None and options:
            refuse(f"without a type, options ({', '.join(options)}) belong into each Item")
        clock = _Clock(self)
        chunk: list[Message] = []
        size = 0
        for given in items:
            message = self._message(given, shared, clock)
            if chunk and (len(chunk) >= CHUNK_TASKS or size + len(message.raw) > CHUNK_BYTES):
                yield from self._send_chunk(chunk)
                chunk, size = [], 0
            chunk.append(message)
            size += len(message.raw)
        if chunk:
            yield from self._send_chunk(chunk)

    def close(self) -> None:
        """Close the connection; it opens again when used."""
        with self._lock:
            self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
