"""Read and push under one lock.

Runs overlap. If one read, a second read and pushed, and then the first pushed, the gateway would show an
older total after a newer one, and Prometheus would take that for a restart. So reading and pushing happen
under a lock in Redis, which a run never waits for: it marks it dirty, and the holder looks again.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from taskbatch.errors import DoubtError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskbatch.metrics.snapshot import Snapshot

LOCK_MARGIN = 2.0
"""Seconds a lock outlives the time its holder has, so that it never ends under one that is still pushing."""

log = logging.getLogger(__name__)


class Scripts(Protocol):
    """Calls a script of `lua/` by the name of its file and returns its reply."""

    def call(self, name: str, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        """Return the reply of the script, or raise."""
        ...


def _token() -> str:
    return os.urandom(8).hex()


@dataclass(frozen=True, slots=True)
class PushLock:
    """The publisher's lock of a queue, as one caller sees it. `key` is the queue's `totals:push`."""

    scripts: Scripts
    key: str
    token: str = field(default_factory=_token)

    def take(self, ttl: float) -> str:
        """Return `taken`, `kept` (it was ours and still is) or `busy` (its holder now knows of us)."""
        return _text(self.scripts.call("push_lock", [self.key], [self.token, _ms(ttl)]))

    def leave(self, ttl: float) -> str:
        """Return `done`, `again` (dirty: still ours for `ttl` seconds, look again) or `lost` (not ours)."""
        return _text(self.scripts.call("push_unlock", [self.key], [self.token, _ms(ttl)]))

    def drop(self) -> str:
        """Leave even if somebody asked to look again; `done` or `lost`."""
        return _text(self.scripts.call("push_unlock", [self.key], [self.token, 0]))


def publish(
    queue: str,
    read: Callable[[], Snapshot],
    push_once: Callable[[Snapshot, float], None],
    lock: PushLock,
    timeout: float,
) -> bool:
    """Read and push until nobody asks for more, for at most `timeout` seconds. Never raises.

    True: what this run counted is at the gateway, or in the hands of a holder of the lock that has not
    read for the last time. (That is as good as pushed, unless the holder dies or fails, which it logs
    itself; then the next run publishes it.) False: it is not, and one warning says why.
    """
    try:
        return _rounds(queue, read, push_once, lock, time.monotonic() + timeout)
    except (UnreachableError, DoubtError) as error:
        # The lock ends by itself: trying to give it back would only wait for Redis once more.
        log.warning("queue %s: metrics not pushed: %s", queue, _one_line(error))
    except Exception as error:  # noqa: BLE001 - metrics never change what becomes of a run
        log.warning("queue %s: metrics not pushed: %s", queue, _one_line(error))
        _drop_quietly(lock)
    return False


def _rounds(
    queue: str,
    read: Callable[[], Snapshot],
    push_once: Callable[[Snapshot, float], None],
    lock: PushLock,
    deadline: float,
) -> bool:
    pushed = False
    while (left := deadline - time.monotonic()) > 0:
        if lock.take(left + LOCK_MARGIN) == "busy":
            return _handed_over(queue)
        snapshot = read()
        left = deadline - time.monotonic()
        match lock.take(left + LOCK_MARGIN):
            case "busy":
                return _handed_over(queue)
            case "taken":
                # It had ended while we read: somebody may have pushed something newer since.
                continue
        push_once(snapshot, left)
        pushed = True
        # A lock that was lost while pushing calls for another look, too: ours may have come last.
        if lock.leave(deadline - time.monotonic() + LOCK_MARGIN) == "done":
            return True
    lock.drop()
    if not pushed:
        log.warning("queue %s: metrics not pushed: no time left", queue)
        return False
    log.warning("queue %s: other runs have newer metrics, and no time is left to push them", queue)
    return True


def _handed_over(queue: str) -> bool:
    log.debug("queue %s: another run is pushing metrics and will push ours", queue)
    return True


def _drop_quietly(lock: PushLock) -> None:
    try:
        lock.drop()
    except Exception as error:  # noqa: BLE001 - it ends by itself, and there was one warning already
        log.debug("the publisher's lock was not released: %s", _one_line(error))


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _text(reply: object) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
