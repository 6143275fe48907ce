"""Which queues there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskbatch.keys import QUEUE_NAME, Keys, queue_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.cli.session import Session
    from taskbatch.connect import Link


def named_or_known(session: Session, link: Link, named: Sequence[str]) -> list[Keys]:
    """Return the keys of the queues a person has named, else of all that were ever used, by name."""
    if named:
        return [session.keys(name) for name in dict.fromkeys(named)]
    names = {raw.decode("utf-8", "replace") for raw in link.call("SMEMBERS", queue_names(session.prefix))}
    # Anybody can write there; what is no queue name is no queue.
    return [session.keys(name) for name in sorted(names) if QUEUE_NAME.fullmatch(name)]
