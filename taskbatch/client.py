"""The producer: puts tasks on queues.

    with Client("redis://localhost:6379/0") as client:
        client.enqueue("email.send", {"to": "a@b.c"}, queue="mail", delay=60)

An error means that nothing was enqueued, or it says that this is not known: a reply was lost. Nothing is
tried again behind the caller's back, because that is how tasks are doubled; who must be sure gives tasks a
`unique_key` and enqueues them again.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from taskbatch.checks import refuse
from taskbatch.errors import DoubtError, TaskbatchError
from taskbatch.message import MAX_PAYLOAD, Item, Message, Template
from taskbatch.sender import Enqueued, Sender
from taskbatch.settings import RedisSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from typing_extensions import Self

    from taskbatch.declaration import Job

__all__ = ["Client", "EnqueueError", "Enqueued", "Item"]

CHUNK_TASKS = 1000
CHUNK_BYTES = 1024 * 1024


class EnqueueError(TaskbatchError):
    """Only a part was enqueued: `enqueued` is certainly in; of the ids in `unknown` that is not known.

    `problem` is the error that ended it.
    """

    def __init__(self, problem: Exception, enqueued: list[Enqueued], unknown: list[str]) -> None:
        doubt = f", of {len(unknown)} more it is not known" if unknown else ""
        super().__init__(f"{len(enqueued)} tasks are enqueued{doubt}, the rest is not: {problem}")
        self.problem = problem
        self.enqueued = enqueued
        self.unknown = unknown


class Client:
    """Enqueues tasks over one connection, opened when first used. Threads may share it."""

    def __init__(self, url: str | RedisSettings, *, prefix: str = "taskbatch", max_payload: int = MAX_PAYLOAD) -> None:
        """Raise ConfigError for a URL that cannot be, or a cap above 1 MiB, the most that runs accept."""
        if not 0 < max_payload <= MAX_PAYLOAD:
            refuse(f"max_payload is from 1 to {MAX_PAYLOAD} bytes, not {max_payload!r}")
        self._sender = Sender(RedisSettings(url=url) if isinstance(url, str) else url, prefix)
        self._prefix = prefix
        self._max_payload = max_payload

    @classmethod
    def from_env(cls) -> Self:
        """Return a client of TASKBATCH_REDIS_URL, else REDIS_URL, else the server on this machine."""
        url = os.environ.get("TASKBATCH_REDIS_URL") or os.environ.get("REDIS_URL") or RedisSettings().url
        return cls(url, prefix=os.environ.get("TASKBATCH_PREFIX") or "taskbatch")

    def enqueue(
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

        Raises PayloadError or PayloadTooLargeError for the payload, ConfigError for what a person has to
        change, UnreachableError or RefusedError (the server is full, read-only, loading): nothing was
        enqueued; DoubtError: it is not known whether it was.
        """
        item = Item(
            type, payload, queue, delay, expires, unique_key, unique_ttl,
            limit_key, max_attempts, headers, id, content_type,
        )  # fmt: skip
        message = self._message(self._template(item), payload, _ServerClock(self._sender))
        try:
            answer = self._sender.send([message])[0]
        except DoubtError as error:
            raise DoubtError(
                f"it is not known whether task {message.id} ({item.name}) was enqueued; enqueue again with a "
                f"unique_key if it must not run twice: {error}"
            ) from error
        if isinstance(answer, TaskbatchError):
            raise answer
        return answer

    def enqueue_many(
        self,
        items: Iterable[Any],
        type: str | Job | None = None,  # noqa: A002 - likewise
        **options: Any,  # noqa: ANN401 - the fields of an Item
    ) -> list[Enqueued]:
        """Enqueue all of `items`, 1,000 small ones a round trip, and return what became of each.

        An item is an `Item`, with options of its own, or else the payload of a task of `type`, to which
        `options` apply: those of `enqueue` but for id and unique_key. Order is kept. Raises what `enqueue`
        raises if nothing was enqueued, else EnqueueError; that goes for errors of the iterable, too.

        What is returned grows with the number of items: for millions take `enqueue_stream`.
        """
        done: list[Enqueued] = []
        try:
            done.extend(self.enqueue_stream(items, type, **options))
        except EnqueueError as error:
            raise EnqueueError(error.problem, done + error.enqueued, error.unknown) from error.problem
        except Exception as error:
            if not done:
                raise
            raise EnqueueError(error, done, []) from error
        return done

    def enqueue_stream(
        self,
        items: Iterable[Any],
        type: str | Job | None = None,  # noqa: A002 - likewise
        **options: Any,  # noqa: ANN401 - likewise
    ) -> Iterator[Enqueued]:
        """Enqueue as `enqueue_many` does and yield what became of each item, chunk by chunk, in flat memory.

        Nothing is sent before the result is iterated. An EnqueueError counts its last chunk only: what was
        yielded is enqueued.
        """
        shared = self._shared(type, options)
        clock = _ServerClock(self._sender)
        chunk: list[Message] = []
        size = 0
        for given in items:
            if isinstance(given, Item):
                message = self._message(self._template(given), given.payload, clock)
            elif shared is None:
                refuse(f"without a type every item must be an Item, not a {given.__class__.__name__}")
            else:
                message = self._message(shared, given, clock)
            if chunk and (len(chunk) >= CHUNK_TASKS or size + len(message.raw) > CHUNK_BYTES):
                yield from self._send(chunk)
                chunk, size = [], 0
            chunk.append(message)
            size += len(message.raw)
        if chunk:
            yield from self._send(chunk)

    def close(self) -> None:
        """Close the connection; it opens again when used."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _shared(self, kind: str | Job | None, options: dict[str, Any]) -> Template | None:
        for name in {"id", "unique_key"} & options.keys():
            refuse(f"{name} is of one task only: give it in an Item")
        if kind is not None:
            return self._template(Item(kind, **options))
        if options:
            refuse(f"without a type, options belong into each Item: {', '.join(sorted(options))}")
        return None

    def _template(self, item: Item) -> Template:
        return Template(item, self._prefix, self._max_payload)

    def _message(self, template: Template, payload: object, clock: _ServerClock) -> Message:
        expires = template.item.expires
        expires_at_ms = 0 if expires is None else clock.after(expires)
        return template.message(payload, int(time.time() * 1000), expires_at_ms)

    def _send(self, chunk: list[Message]) -> list[Enqueued]:
        try:
            answers = self._sender.send(chunk)
        except DoubtError as error:
            raise EnqueueError(error, [], [message.id for message in chunk]) from error
        enqueued = [answer for answer in answers if isinstance(answer, Enqueued)]
        for answer in answers:
            if isinstance(answer, TaskbatchError):
                if not enqueued:
                    raise answer
                raise EnqueueError(answer, enqueued, []) from answer
        return enqueued


class _ServerClock:
    """The server's time, asked once and when first needed; from then on this machine counts."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._offset: float | None = None

    def after(self, seconds: float) -> int:
        """Return the server's time in `seconds` from now, in milliseconds."""
        if self._offset is None:
            self._offset = self._sender.now_ms() - time.monotonic() * 1000
        return int(self._offset + (time.monotonic() + seconds) * 1000)
