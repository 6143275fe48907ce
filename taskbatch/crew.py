"""The run's side of its worker threads: what is handed to them, what came of it, what is over its time.

Outcomes end in the holdings, to be written by the exchange; nothing here talks to Redis.
"""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from typing import TYPE_CHECKING

from taskbatch.errors import TaskbatchError
from taskbatch.holding import Decision, Holding
from taskbatch.invocation import Watch
from taskbatch.outcome import Outcome, Release, ReleaseReason
from taskbatch.pace import Pace
from taskbatch.policy import decide, decide_interrupted
from taskbatch.pool import Flight, Pool, timed_out
from taskbatch.settings import UNSTARTED_MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.declaration import Job
    from taskbatch.settlement import Claimed

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""How often running jobs are held against their timeouts."""

REACTION_SECONDS = 2.0
"""How long a job may take to react to its timeout before it is settled for it."""


class Crew:
    """`threads` workers that start at most `max_tasks` tasks. `stuck`: one did not react to its timeout."""

    def __init__(self, threads: int, max_tasks: int | None, redact: Callable[[str], str]) -> None:
        self.stuck = False
        self._pool = Pool(threads, redact=redact)
        self._pace = Pace(threads, max_tasks)
        self._flights: dict[int, Flight] = {}
        self._waiting: deque[Flight] = deque()
        self._looked_at = 0.0

    @property
    def at_work(self) -> bool:
        """Whether anything was submitted that has not come back."""
        return self._pool.in_pool > 0

    @property
    def exhausted(self) -> bool:
        """Whether as many tasks were started as the run may start."""
        return self._pace.exhausted

    @property
    def want(self) -> int:
        """How many tasks to claim for it now."""
        return self._pace.want(self._pool.in_pool)

    def lease_holds(self, until: float) -> None:
        """Let workers begin tasks until then, a `boot_time()`; 0 = no more."""
        self._pool.lease_until = until

    def wake(self) -> None:
        """End a wait in `gather`; may be called from a signal handler."""
        self._pool.wake()

    def submit(self, holding: Holding, one: Claimed, job: Job) -> None:
        """Hand a task to the workers."""
        assert one.task is not None  # noqa: S101 - its type named the job
        flight = Flight(holding, one, job, one.task, time.monotonic(), Watch())
        self._flights[id(one)] = flight
        self._waiting.append(flight)
        self._pace.admitted += 1
        self._pool.submit(flight)

    def gather(self, seconds: float = 0.0) -> None:
        """Take in what has ended, waiting at most `seconds` for a first one."""
        ran, took = 0, 0.0
        for flight in self._pool.gather(seconds):
            if flight.error is not None:
                msg = f"a worker failed: {flight.error!r:.300}"
                raise TaskbatchError(msg) from flight.error
            if flight.abandoned:
                log.warning("task %s ended after it was settled for it; that is ignored", flight.task.id)
                continue
            self._flights.pop(id(flight.held), None)
            if flight.started is None or flight.outcome is None:
                # Its worker found the lease over.
                self._pace.admitted -= 1
                _decide(flight, Release(0.0, "shutdown"), None)
                continue
            ran, took = ran + 1, took + flight.duration
            _decide(flight, flight.outcome, flight.duration)
            if flight.result is not None and flight.result.traceback:
                log.debug("task %s:\n%s", flight.task.id, flight.result.traceback)
        if ran:
            self._pace.measured(took, ran)

    def look(self) -> None:
        """Hold running jobs against their timeouts, a few times a second."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for flight in self._pool.running():
            if flight.abandoned or flight.started is None or now < flight.started + flight.job.timeout:
                continue
            if flight.expired is None:
                flight.expired = now
                flight.watch.expire()
            elif now >= flight.expired + REACTION_SECONDS:
                log.error("task %s (%s) does not react to its timeout", flight.task.id, flight.job.name)
                self.stuck = True
                self._pool.abandon(flight)
                self._flights.pop(id(flight.held), None)
                _decide(flight, _out_of_time(flight), now - flight.started)

    def hand_back_waiting(self) -> None:
        """Give back what was claimed ahead and has waited too long for a thread."""
        while self._waiting and self._waiting[0].started is not None:
            self._waiting.popleft()
        if self._waiting and time.monotonic() - self._waiting[0].submitted > UNSTARTED_MAX_SECONDS:
            self._pace.guessed_wrong()
            self.hand_back("no_time")

    def hand_back(self, reason: ReleaseReason) -> None:
        """Give back what no worker has begun, to the front of its list: the last one goes first, to keep the order."""
        for flight in reversed(self._pool.pull_back()):
            self._flights.pop(id(flight.held), None)
            self._pace.admitted -= 1
            _decide(flight, Release(0.0, reason), None)
        self._waiting.clear()

    def interrupt(self) -> None:
        """Hand back what still runs: an interruption, no attempt, unless it has had its whole timeout."""
        self.lease_holds(0.0)
        self.gather()
        now = time.monotonic()
        for flight in list(self._flights.values()):
            self._flights.pop(id(flight.held))
            if flight.started is None:
                _decide(flight, Release(0.0, "shutdown"), None)
                continue
            # Its permit was used: what a job did until now cannot be taken back.
            flight.held.window = ""
            if now >= flight.started + flight.job.timeout:
                _decide(flight, _out_of_time(flight), now - flight.started)
            else:
                _decide(flight, decide_interrupted(flight.task), None)

    def dismiss(self) -> None:
        """Let no worker begin anything any more, whatever it has in hand; does not wait for what runs."""
        self.lease_holds(0.0)
        self._pool.stop()


def _decide(flight: Flight, outcome: Outcome, duration: float | None) -> None:
    if flight.holding.holds(flight.held):
        flight.holding.decided.append(Decision(flight.held, outcome, duration))
    else:
        log.warning("task %s was taken away while it ran; what came of it is ignored", flight.task.id)


def _out_of_time(flight: Flight) -> Outcome:
    """Return the outcome for a job that had its whole timeout and still runs: a failed attempt."""
    return decide(flight.task, flight.job, timed_out(flight), random.Random())  # noqa: S311 - jitter, not a secret
