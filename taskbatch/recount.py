"""After any doubt: reconnect, check the own lease, read the own lists."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from taskbatch.clock import boot_time
from taskbatch.connect import checked
from taskbatch.errors import REDIS_TROUBLE, TaskbatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskbatch.queue import RunQueue
    from taskbatch.scripts import Scripts

log = logging.getLogger(__name__)

SHORTEST_DELAY = 0.02
LONGEST_DELAY = 0.5
"""Pauses between tries to reach Redis, in seconds; each is twice the one before."""

SHORTEST_TIMEOUT = 0.5
"""How long a reply may take in seconds when there is no patience left: one last look is worth that much."""


class RedisLostError(TaskbatchError):
    """Redis did not come back while the lease was good; what the run holds is the reaper's."""


def recount(
    scripts: Scripts,
    queues: Sequence[RunQueue],
    lease: float,
    *,
    lease_until: float,
    patience: Callable[[], float],
) -> tuple[float | None, int, list[list[list[bytes]]]]:
    """Return until when the lease now holds (`boot_time()`, None: it is lost), the time of Redis in ms, the own lists.

    Tries until `lease_until`, or as long as there is `patience` (seconds), then raises RedisLostError.
    """
    delay, timeout = SHORTEST_DELAY, scripts.link.timeout
    while True:
        scripts.link.timeout = min(timeout, max(SHORTEST_TIMEOUT, patience()))
        try:
            asked = boot_time()
            # The lease first: from here on nobody else moves what is in the lists.
            kept = [checked(reply) for reply in scripts.exchange([queue.renew(lease) for queue in queues])]
            wanted = [("LRANGE", name, 0, -1) for queue in queues for name in queue.own_lists]
            (seconds, micros), *found = map(checked, scripts.link.exchange([("TIME",), *wanted]))
        except REDIS_TROUBLE as error:
            if boot_time() >= lease_until or patience() <= 0:
                msg = f"Redis did not come back: {error}"
                raise RedisLostError(msg) from error
            log.debug("waiting for Redis: %s", error)
            time.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)
        else:
            lists = [found[i : i + 3] for i in range(0, len(found), 3)]
            scripts.link.timeout = timeout
            now_ms = int(seconds) * 1000 + int(micros) // 1000
            return (asked + lease if all(kept) else None), now_ms, lists
