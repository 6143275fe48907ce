"""The run's dealings with Redis: settle and claim in one round trip, renew, ask the limiter, and recount.

When a reply is lost, nothing is repeated: the run looks at its own lists and believes those.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from taskbatch.admission import parsed
from taskbatch.clock import boot_time
from taskbatch.connect import checked
from taskbatch.errors import REDIS_TROUBLE, DoubtError, TaskbatchError, UnreachableError
from taskbatch.holding import Decision, Holding
from taskbatch.limiter import group
from taskbatch.queue import Claim, read_claim, read_settled
from taskbatch.recount import recount
from taskbatch.settlement import Claimed, settlement
from taskbatch.telling import tell_gone, tell_settled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskbatch.declaration import Job
    from taskbatch.queue import RunQueue
    from taskbatch.report import Tally
    from taskbatch.scripts import Call, Scripts

log = logging.getLogger(__name__)

LIMITER_PAUSE = 1.0
"""After how many seconds a task comes back whose rate limiter could not answer."""


@dataclass(slots=True)
class Got:
    """What an exchange has brought: `changed` is whether anything moved, `claim` the reply of the claim if it had one.

    `new` are the tasks that are now the run's, with the queue they came from and the time of Redis in ms.
    """

    changed: bool = False
    claim: Claim | None = None
    new: list[tuple[Holding, list[Claimed], int]] = field(default_factory=list)


class Exchange:
    """Speaks for one run. `lease_until` is a `boot_time()`; `patience` tells how many seconds Redis may stay away."""

    def __init__(
        self,
        scripts: Scripts,
        queues: Sequence[RunQueue],
        tally: Tally,
        *,
        prefix: str,
        lease: float,
        lease_until: float,
        patience: Callable[[], float],
    ) -> None:
        self.holdings = [Holding(queue) for queue in queues]
        self.lease_until = lease_until
        self.lease_lost = False
        self._scripts = scripts
        self._tally = tally
        self._prefix = prefix
        self._lease = lease
        self._patience = patience
        self._now_ms = 0

    @property
    def deciding(self) -> bool:
        """Whether outcomes wait to be written."""
        return any(holding.decided for holding in self.holdings)

    def swap(self, claiming: Holding | None = None, claim: Call | None = None, *, suspect: bool = False) -> Got:
        """Settle what is decided, renew when a third of the lease has passed, and claim: one round trip.

        Raises RedisLostError when Redis stays away, ConfigError when it will not let us.
        """
        batches = [(holding, batch) for holding in self.holdings if (batch := holding.batch())]
        calls = [holding.queue.settle([settlement(*one) for one in batch]) for holding, batch in batches]
        asked = boot_time()
        renewing = not self.lease_lost and asked >= self.lease_until - self._lease * 2 / 3
        if renewing:
            calls += [holding.queue.renew(self._lease) for holding in self.holdings]
        if claim is not None:
            calls.append(claim)
        if not calls:
            return Got()
        got = Got()
        seen: dict[int, tuple[int, int, int]] = {}
        try:
            replies = iter(self._scripts.exchange(calls))
            for holding, batch in batches:
                seen[id(holding)] = self._settled(holding, batch, next(replies))
                got.changed = True
            if renewing:
                self._renewed(asked, [checked(next(replies)) for _ in self.holdings])
            if claim is not None and claiming is not None:
                got.claim = read_claim(checked(next(replies)), suspect=suspect)
                seen[id(claiming)] = got.claim.lengths
                self._take_on(claiming, got)
        except REDIS_TROUBLE as error:
            # Refused counts, too: what came behind a refused call may have been done.
            return self.recover(error)
        if got.claim is not None and got.claim.status == "lost":
            # Run out, perhaps, but not taken away: then it is renewed, and all is well.
            got.new += self.recover("Redis says that the lease is over").new
            return got
        wrong = [one for one in self.holdings if id(one) in seen and tuple(one.lengths) != seen[id(one)]]
        # A settle that ran after its claim makes the claim's lengths old ones.
        if wrong and not self._scripts.reordered:
            again = self.recover(f"queue {wrong[0].queue.keys.queue}: own lists are not as long as they should be")
            got.new += again.new
        return got

    def recover(self, why: object) -> Got:
        """After any doubt: reconnect, check the lease, believe the own lists. Raises RedisLostError."""
        log.warning("%s; looking at what this run holds", why)
        lease_until, self._now_ms, lists = recount(
            self._scripts,
            [holding.queue for holding in self.holdings],
            self._lease,
            lease_until=self.lease_until,
            patience=self._patience,
        )
        if lease_until is None:
            self._lose_lease()
        elif not self.lease_lost:
            self.lease_until = lease_until
        got = Got(changed=True)
        for i, holding in enumerate(self.holdings):
            found = holding.reconcile(lists[i], lease_kept=not self.lease_lost)
            for decision in found.applied:
                tell_settled(self._tally, holding.queue, decision, done=True)
            for decision in found.lost:
                tell_settled(self._tally, holding.queue, decision, done=False)
            for one in found.gone:
                tell_gone(self._tally, holding.queue, one)
            new = found.again + self._adopt(holding, found.adopted, "")
            if new:
                got.new.append((holding, new, self._now_ms))
        return got

    def give_up_all(self) -> None:
        """Count as lost what is still held: it stays in the own lists, for the reaper."""
        for holding in self.holdings:
            for one in list(holding.held.values()):
                holding.forget(one)
                tell_gone(self._tally, holding.queue, one)

    def waiting(self) -> int | None:
        """Return how many tasks could be claimed, None when Redis does not say. For a person who watches."""
        lists = [(k.pending, k.recovered, k.suspects) for k in (holding.queue.keys for holding in self.holdings)]
        try:
            replies = self._scripts.link.exchange([("LLEN", key) for keys in lists for key in keys])
        except REDIS_TROUBLE:
            return None
        return sum(reply for reply in replies if isinstance(reply, int))

    def limit(self, tasks: Sequence[tuple[Claimed, Job]]) -> dict[int, float]:
        """Return who may not start now (by `id`) and after how many seconds each may ask again."""
        wanted = group(self._prefix, tasks)
        if not wanted:
            return {}
        denied: dict[int, float] = {}
        try:
            replies: list[Any] = self._scripts.exchange([of_limit.call() for of_limit in wanted])
        except (DoubtError, UnreachableError) as error:
            # Permits may be used up: starting nothing is right whether they are or not.
            replies = [error] * len(wanted)
        for of_limit, reply in zip(wanted, replies, strict=True):
            try:
                late = of_limit.delays(_answer(reply))
            except TaskbatchError as error:
                log.warning("the rate limiter cannot answer, nothing limited starts: %s", error)
                late = [(one, LIMITER_PAUSE) for one in of_limit.returning + of_limit.fresh]
            denied.update((id(one), delay) for one, delay in late)
        return denied

    def _settled(self, holding: Holding, batch: list[Decision], reply: Any) -> tuple[int, int, int]:  # noqa: ANN401
        settled = read_settled(checked(reply))
        for decision, done in zip(batch, settled.done, strict=True):
            tell_settled(self._tally, holding.queue, decision, done=done)
        holding.settled(batch)
        return settled.lengths

    def _take_on(self, holding: Holding, got: Got) -> None:
        claim = got.claim
        if claim is None:
            return
        self._now_ms = claim.now_ms
        if claim.entries:
            got.changed = True
            got.new.append((holding, self._adopt(holding, claim.entries, claim.window), claim.now_ms))

    def _adopt(self, holding: Holding, entries: Sequence[tuple[int, bytes]], window: str) -> list[Claimed]:
        new = [parsed(n, entry, self._now_ms, window) for n, entry in entries]
        for one in new:
            holding.add(one)
        self._tally.claimed += len(new)
        return new

    def _renewed(self, asked: float, kept: Sequence[int]) -> None:
        if all(kept):
            self.lease_until = asked + self._lease
        else:
            self._lose_lease()

    def _lose_lease(self) -> None:
        if not self.lease_lost:
            log.error("the lease is lost: other runs may have taken over what this one holds")
        self.lease_lost = True
        self.lease_until = 0.0


def _answer(reply: Any) -> Any:  # noqa: ANN401 - a Redis reply
    if isinstance(reply, TaskbatchError):
        raise reply
    return checked(reply)
