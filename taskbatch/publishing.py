"""Publishing the metrics of a run's queues: to the Pushgateway, to a file. Never changes an outcome."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from taskbatch import __version__
from taskbatch.keys import Keys
from taskbatch.metrics.publish import PushLock, publish
from taskbatch.survey import survey, to_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.metrics.snapshot import Snapshot
    from taskbatch.metrics.target import PushTarget
    from taskbatch.scripts import Scripts
    from taskbatch.settings import PushSettings

log = logging.getLogger(__name__)


def checked_target(push: PushSettings) -> PushTarget | None:
    """Return where to push to, None = nowhere. Raises ConfigError for what cannot be a gateway."""
    if push.url is None:
        return None
    from taskbatch.metrics.target import push_target  # noqa: PLC0415 - only who pushes pays for it

    return push_target(push.url, user=push.username, password=push.password, token=push.token, ca_file=push.ca_file)


def publish_all(
    scripts: Scripts, queues: Sequence[str], prefix: str, push: PushSettings, target: PushTarget | None
) -> bool | None:
    """Push each queue's group and write the textfile, all within `push.timeout`; None = no gateway is configured."""
    until = time.monotonic() + push.timeout

    def left() -> float:
        return max(0.001, until - time.monotonic())

    def read(queue: str) -> Snapshot:
        scripts.link.timeout = min(scripts.link.timeout, left())
        return to_snapshot(survey(scripts.link, Keys(prefix, queue)), __version__)

    if push.textfile is not None:
        from taskbatch.metrics.render import render  # noqa: PLC0415 - 60 ms
        from taskbatch.metrics.textfile import publish_textfile  # noqa: PLC0415

        publish_textfile(lambda: render([read(queue) for queue in queues]), push.textfile, left())
    if target is None:
        return None
    from taskbatch.metrics.push import gateway  # noqa: PLC0415 - http.client costs 31 ms

    done = True
    for queue in queues:
        lock = PushLock(scripts, Keys(prefix, queue).totals_push)
        done &= publish(queue, partial(read, queue), gateway(target), lock, left())
    return done
