"""The rate limiter's edge: one `acquire` for all tasks of one limit, all limits in one round trip."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from taskbatch.keys import limit_state
from taskbatch.scripts import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.declaration import Job
    from taskbatch.ratelimit import RateLimit
    from taskbatch.settlement import Claimed


@dataclass(slots=True)
class Wanted:
    """The tasks of one limit that ask for a permit, in the order they are to be run."""

    key: str
    limit: RateLimit
    returning: list[Claimed] = field(default_factory=list)
    fresh: list[Claimed] = field(default_factory=list)

    def call(self) -> Call:
        """Return the call that asks for all of them at once."""
        limit = self.limit
        args: list[Any] = [limit.limit, int(limit.period * 1000), len(self.returning), len(self.fresh)]
        if limit.algorithm == "gcra":
            return Call("rate_limit_gcra", [self.key], [*args, limit.burst])
        return Call("rate_limit", [self.key], args)

    def delays(self, reply: list[Any]) -> list[tuple[Claimed, float]]:
        """Return who is denied, each with the seconds until it may come back."""
        now, to_returning, to_fresh = reply[0], reply[1], reply[2]
        denied = self.returning[to_returning:] + self.fresh[to_fresh:]
        return [(one, max(0.001, (due - now) / 1000)) for one, due in zip(denied, reply[3:], strict=True)]


def group(prefix: str, tasks: Sequence[tuple[Claimed, Job]]) -> list[Wanted]:
    """Group tasks of limited jobs by the limit that counts them; those denied before come first in each."""
    wanted: dict[str, Wanted] = {}
    for held, job in tasks:
        if job.rate_limit is None or held.task is None:
            continue
        sub_key = held.task.limit_key if job.rate_limit.per_key else ""
        key = limit_state(prefix, job.limit_name, sub_key)
        of_limit = wanted.setdefault(key, Wanted(key, job.rate_limit))
        (of_limit.returning if held.booked else of_limit.fresh).append(held)
    return list(wanted.values())
