"""The worker threads: a ThreadPoolExecutor whose few submitted jobs are loops on a queue.

A Future a task would cost more than most of what a run does for it. Workers never talk to Redis about
tasks; they take a flight from the inbox, run it and put it on the done queue.
"""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from taskbatch.clock import boot_time
from taskbatch.invocation import Failed, Watch, invoke
from taskbatch.policy import decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.declaration import Job
    from taskbatch.holding import Holding
    from taskbatch.invocation import Result
    from taskbatch.outcome import Outcome
    from taskbatch.settlement import Claimed
    from taskbatch.task import Task


@dataclass(slots=True, eq=False)
class Flight:
    """One task on its way through a worker. Times are of `time.monotonic()`; None = not yet.

    `outcome` stays None for a task that was not started because the lease was over. `abandoned`: it was
    settled for it, after its timeout; whatever it still does is not heard.
    """

    holding: Holding
    held: Claimed
    job: Job
    task: Task
    submitted: float
    watch: Watch
    started: float | None = None
    duration: float = 0.0
    result: Result | None = None
    outcome: Outcome | None = None
    error: BaseException | None = None
    expired: float | None = None
    abandoned: bool = False


class Pool:
    """`size` worker threads, started with the first task. `lease_until` is a `boot_time()`; `redact`: see `invoke`."""

    def __init__(self, size: int, seed: int | None = None, *, redact: Callable[[str], str] = str) -> None:
        self.size = size
        self._redact = redact
        self.lease_until = 0.0
        self._executor: ThreadPoolExecutor | None = None
        self._inbox: SimpleQueue[Flight | None] = SimpleQueue()
        self._done: SimpleQueue[Flight | None] = SimpleQueue()
        self._running: list[Flight | None] = [None] * size
        self._in_pool = 0
        self._pid = os.getpid()
        self._rng = random.Random(seed)  # noqa: S311 - jitter, not a secret

    @property
    def in_pool(self) -> int:
        """How many flights were submitted and have not come back."""
        return self._in_pool

    @property
    def free(self) -> int:
        """How many threads have nothing to do."""
        return max(0, self.size - self._in_pool)

    def submit(self, flight: Flight) -> None:
        """Hand a flight to the workers."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.size, thread_name_prefix="taskbatch")
            for slot in range(self.size):
                self._executor.submit(self._work, slot)
        self._in_pool += 1
        self._inbox.put(flight)

    def running(self) -> list[Flight]:
        """Return what runs at this moment."""
        return [flight for flight in self._running if flight is not None]

    def pull_back(self) -> list[Flight]:
        """Take back what no worker has begun, in the order it was submitted."""
        back: list[Flight] = []
        while True:
            try:
                flight = self._inbox.get_nowait()
            except Empty:
                self._in_pool -= len(back)
                return back
            if flight is not None:
                back.append(flight)

    def gather(self, timeout: float) -> list[Flight]:
        """Return what has ended, waiting at most `timeout` seconds for a first one (or for `wake`)."""
        ended: list[Flight] = []
        try:
            first = self._done.get(timeout=timeout) if timeout > 0 else self._done.get_nowait()
            if first is not None:
                ended.append(first)
            while True:
                flight = self._done.get_nowait()
                if flight is not None:
                    ended.append(flight)
        except Empty:
            pass
        self._in_pool -= sum(1 for flight in ended if not flight.abandoned)
        return ended

    def abandon(self, flight: Flight) -> None:
        """Stop waiting for a flight whose thread does not react."""
        flight.abandoned = True
        self._in_pool -= 1

    def wake(self) -> None:
        """End a wait in `gather`; may be called from a signal handler."""
        self._done.put(None)

    def stop(self) -> None:
        """Tell the workers to end when they are done with what they run; does not wait."""
        if self._executor is not None:
            for _ in range(self.size):
                self._inbox.put(None)
            self._executor.shutdown(wait=False)

    def _work(self, slot: int) -> None:
        while (flight := self._inbox.get()) is not None:
            try:
                self._fly(slot, flight)
            except BaseException as error:  # noqa: BLE001 - the main thread must hear of it, whatever it is
                flight.error = error
            if os.getpid() != self._pid:
                # A child that the job has forked: it must not go on with copies of our tasks.
                os._exit(0)
            self._running[slot] = None
            self._done.put(flight)

    def _fly(self, slot: int, flight: Flight) -> None:
        # Lease first: a paused process must not start what others may have taken over meanwhile.
        if boot_time() >= self.lease_until:
            return
        flight.started = begun = time.monotonic()
        self._running[slot] = flight
        flight.result = invoke(flight.job, flight.task, flight.watch, self._redact)
        flight.duration = time.monotonic() - begun
        flight.outcome = decide(flight.task, flight.job, flight.result, self._rng)


def timed_out(flight: Flight) -> Failed:
    """Return the result of a job that had its whole timeout and does not react."""
    return Failed(f"timeout: still running {flight.job.timeout:g} s after its start", timed_out=True)
