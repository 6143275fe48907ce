"""The loop of a run: gather, exchange, limit, submit, wait; then hand back what was not done.

It runs on the main thread and is the only place that decides when something happens. What happens to a
task is decided in `policy`, written by `exchange`, and done by the threads of `crew`.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections import deque
from typing import TYPE_CHECKING

from taskbatch.admission import admit
from taskbatch.crew import Crew
from taskbatch.declaration import Job
from taskbatch.door import Door
from taskbatch.errors import REDIS_TROUBLE
from taskbatch.exchange import Exchange, Got
from taskbatch.holding import Decision, Holding
from taskbatch.outcome import Release
from taskbatch.recount import RedisLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from taskbatch.queue import RunQueue
    from taskbatch.reaper import Reaper
    from taskbatch.report import StopReason, Tally
    from taskbatch.scripts import Call, Scripts
    from taskbatch.settings import RunSettings
    from taskbatch.settlement import Claimed
    from taskbatch.signals import Signals

log = logging.getLogger(__name__)

BUSY_SECONDS = 0.1
"""How often a dry queue is asked while threads are busy and some are free."""

COUNT_SECONDS = 1.0
"""How often what waits is counted, while somebody watches."""

SUSPECT_SECONDS = 60.0
"""How long a run without a time budget spends on suspects before anything else."""


class Runner:
    """One run over its queues. `started` and the time budget are of `time.monotonic()`, the lease of `boot_time()`."""

    def __init__(
        self,
        settings: RunSettings,
        queues: Sequence[RunQueue],
        scripts: Scripts,
        reapers: Sequence[Reaper],
        jobs: Mapping[str, Job],
        *,
        tally: Tally,
        signals: Signals,
        started: float,
        lease_until: float,
        on_progress: Callable[[Tally], None] | None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.stop: StopReason | None = None
        self._settings = settings
        self._tally = tally
        self._reapers = reapers
        self._jobs = jobs
        self._signals = signals
        self._on_progress = on_progress
        self._counted_at = 0.0
        self._exchange = Exchange(
            scripts,
            queues,
            tally,
            prefix=settings.prefix,
            lease=settings.lease,
            lease_until=lease_until,
            patience=self._patience,
        )
        self._holdings = self._exchange.holdings
        self._crew = Crew(settings.concurrency, settings.max_tasks, redact)
        self._door = Door(scripts.link, self._crew.gather)
        self._until = None if settings.max_runtime is None else started + settings.max_runtime
        self._leave_at = None if self._until is None else self._until + settings.grace
        # Fresh processes must not all begin at the same queue, or the others starve.
        self._turn = random.randrange(len(queues))  # noqa: S311 - fairness, not a secret
        self._alone: deque[Holding] = deque(self._holdings)
        self._alone_for = SUSPECT_SECONDS if settings.max_runtime is None else settings.max_runtime / 4
        self._alone_until = started + self._alone_for
        self._idle_since: float | None = None
        self._looked_again = False
        signals.wake = self._crew.wake

    def run(self) -> StopReason:
        """Work until there is a reason to stop, hand back what was not done, and return the reason."""
        try:
            while self.stop is None:
                self._step()
                self._show()
            self._finish()
        except RedisLostError as error:
            log.error("%s", error)  # noqa: TRY400 - one line; the rest is in the debug log
            self.stop = "redis_lost"
        finally:
            self._crew.dismiss()
            self._exchange.give_up_all()
        return self.stop or "empty"

    def clear(self) -> None:
        """Hand back whatever the own lists hold against all expectation. Raises RedisLostError."""
        self.stop = self.stop or "empty"
        self._take_on(self._exchange.recover("the own lists are not empty"))
        self._interrupt()

    def _show(self) -> None:
        if self._on_progress is None:
            return
        now = time.monotonic()
        if now >= self._counted_at + COUNT_SECONDS:
            self._counted_at = now
            self._tally.waiting = self._exchange.waiting()
        self._on_progress(self._tally)

    def _step(self) -> None:
        self._crew.gather()
        self._crew.look()
        self._crew.hand_back_waiting()
        self.stop = self._reason_to_stop()
        if self.stop is not None:
            return
        got = self._swap(*self._next_claim())
        if got.changed or got.new:
            # What was settled may have gone back, and what ran may have enqueued: every queue is asked once more.
            for holding in self._holdings:
                holding.dry = False
            return
        if self._crew.at_work:
            self._crew.gather(BUSY_SECONDS)
        elif all(holding.dry for holding in self._holdings) and not self._exchange.deciding and not self._alone:
            self.stop = self._idle()
        else:
            for holding in self._holdings:
                if not holding.dry:
                    holding.dry_until = 0.0

    def _reason_to_stop(self) -> StopReason | None:
        if self._signals.received:
            return "signal"
        if self._exchange.lease_lost:
            return "lease_lost"
        if self._crew.stuck:
            return "stuck_thread"
        if self._until is not None and time.monotonic() >= self._until:
            return "max_runtime"
        if self._crew.exhausted and not self._crew.at_work and not self._exchange.deciding:
            return "max_tasks"
        return None

    # -- claim ------------------------------------------------------------------------------------

    def _next_claim(self) -> tuple[Holding | None, Call | None]:
        if self._alone and (self._crew.exhausted or time.monotonic() >= self._alone_until):
            self._alone.clear()
        # A suspect that still runs when its time is over stays alone all the same.
        if self._alone or any(holding.lengths[2] for holding in self._holdings):
            held = any(holding.held for holding in self._holdings)
            return (None, None) if held else (self._alone[0], self._alone[0].queue.claim_suspect())
        want = self._crew.want
        now = time.monotonic()
        for _ in self._holdings:
            holding = self._holdings[self._turn % len(self._holdings)]
            self._turn += 1
            # Beside a settle a claim costs no round trip of its own; a limited or paused queue is left alone.
            free = self._exchange.deciding and not holding.resting
            if want > 0 and (free or now >= holding.dry_until):
                return holding, holding.queue.claim(want)
        return None, None

    def _swap(self, claiming: Holding | None, claim: Call | None) -> Got:
        alone = bool(self._alone) and claiming is not None
        got = self._exchange.swap(claiming, claim, suspect=alone)
        self._crew.lease_holds(self._exchange.lease_until)
        if claiming is not None and got.claim is not None:
            claiming.answered(got.claim, time.monotonic(), suspect=alone)
            if alone and not got.claim.entries:
                self._alone.popleft()
        self._take_on(got)
        return got

    def _take_on(self, got: Got) -> None:
        for holding, new, now_ms in got.new:
            self._idle_since = None
            self._looked_again = False
            self._admit(holding, new, now_ms)

    def _admit(self, holding: Holding, new: Iterable[Claimed], now_ms: int) -> None:
        left = None if self._leave_at is None else self._leave_at - time.monotonic()
        verdicts = [(one, admit(one, self._jobs, now_ms, left)) for one in new]
        asking = [] if self.stop else [(one, verdict) for one, verdict in verdicts if isinstance(verdict, Job)]
        denied = self._exchange.limit(asking)
        for one, verdict in verdicts:
            if not isinstance(verdict, Job):
                holding.decided.append(Decision(one, verdict, None))
            elif self.stop is not None:
                # Found in our lists while leaving: nothing is begun any more.
                holding.decided.append(Decision(one, Release(0.0, "shutdown"), None))
            elif id(one) in denied:
                holding.decided.append(Decision(one, Release(denied[id(one)], "limit"), None))
            else:
                self._crew.submit(holding, one, verdict)

    # -- nothing in flight --------------------------------------------------------------------------

    def _idle(self) -> StopReason | None:
        if all(holding.paused for holding in self._holdings):
            return "paused"
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        due = min((holding.due_in for holding in self._holdings if holding.due_in is not None), default=math.inf)
        left = self._idle_since + self._settings.wait - now
        if left > 0:
            self._wait(min(left, max(due, 0.001)))
            return None
        if not self._looked_again:
            self._looked_again = True
            self._look_again()
            return None
        if due <= self._settings.wait_due:
            self._wait(max(due, 0.001))
            return None
        return "empty"

    def _look_again(self) -> None:
        """Before calling it empty: what expired runs hold, what has fallen due, suspects."""
        try:
            for reaper in self._reapers:
                reaped = reaper.look(until=self._until)
                self._tally.take_reaped(reaped.moved, reaped.dead)
        except REDIS_TROUBLE as error:
            self._take_on(self._exchange.recover(error))
        self._alone.extend(self._holdings)
        self._alone_until = time.monotonic() + self._alone_for
        for holding in self._holdings:
            holding.stir()

    def _wait(self, seconds: float) -> None:
        if self._until is not None:
            seconds = min(seconds, max(0.0, self._until - time.monotonic()))
        try:
            self._door.wait([one.queue.keys.pending for one in self._holdings if not one.resting], seconds)
        except REDIS_TROUBLE as error:
            self._take_on(self._exchange.recover(error))
        for holding in self._holdings:
            holding.stir()

    # -- the end ------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._crew.hand_back("shutdown")
        if self.stop == "lease_lost":
            by = time.monotonic() + self._settings.grace
            self._leave_at = by if self._leave_at is None else min(by, self._leave_at)
        while True:
            self._swap(None, None)
            self._crew.hand_back("shutdown")
            if self._exchange.deciding:
                continue
            if not self._crew.at_work or self._patience() <= 0:
                break
            self._crew.gather(BUSY_SECONDS)
            self._crew.look()
            self._show()
        self._interrupt()

    def _patience(self) -> float:
        """Return for how many more seconds anything may be waited for."""
        if self._signals.received > 1:
            return 0.0
        ends = [] if self._leave_at is None else [self._leave_at]
        if self._signals.since is not None:
            ends.append(self._signals.since + self._settings.grace)
        return min(ends) - time.monotonic() if ends else math.inf

    def _interrupt(self) -> None:
        self._crew.interrupt()
        while self._exchange.deciding:
            self._swap(None, None)
