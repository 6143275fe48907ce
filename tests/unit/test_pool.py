"""The worker threads, with real threads."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from taskbatch import pool as pools
from taskbatch.clock import boot_time
from taskbatch.declaration import Job
from taskbatch.holding import Holding
from taskbatch.invocation import Watch
from taskbatch.keys import Keys
from taskbatch.outcome import Ack, Retry
from taskbatch.pool import Flight, Pool
from taskbatch.queue import RunQueue
from taskbatch.settlement import Claimed
from taskbatch.task import Task
from tests.batches import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOLDING = Holding(RunQueue(Keys("taskbatch", "default"), "r1"))


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(2)
    made.lease_until = boot_time() + 60
    yield made
    made.stop()


def flight(function: Callable[[], object], name: str = "a") -> Flight:
    task = Task(id=name, type="note", payload=b"null")
    held = Claimed(0, task.SerializeToString(), task, kind="note")
    return Flight(HOLDING, held, Job("note", function), task, 0.0, Watch())


def gathered(pool: Pool, count: int) -> list[Flight]:
    ended: list[Flight] = []

    def enough() -> bool:
        ended.extend(pool.gather(0.05))
        return len(ended) >= count

    eventually(enough, f"{count} flights")
    return ended


def test_a_flight_comes_back_with_its_outcome(pool: Pool) -> None:
    ran = threading.Event()

    pool.submit(flight(ran.set))

    (ended,) = gathered(pool, 1)
    assert ended.outcome == Ack()
    assert ended.started is not None
    assert ended.duration >= 0
    assert ran.is_set()
    assert pool.in_pool == 0


def test_an_error_of_the_job_is_its_outcome(pool: Pool) -> None:
    def fail() -> None:
        raise ValueError("no")

    pool.submit(flight(fail))

    (ended,) = gathered(pool, 1)
    assert ended.error is None
    assert isinstance(ended.outcome, Retry)
    assert ended.outcome.error == "ValueError: no"


def test_nothing_starts_when_the_lease_is_over(pool: Pool) -> None:
    ran = threading.Event()
    pool.lease_until = boot_time() - 0.001

    pool.submit(flight(ran.set))

    (ended,) = gathered(pool, 1)
    assert (ended.started, ended.outcome, ended.error) == (None, None, None)
    assert not ran.is_set()


def test_an_error_of_a_worker_surfaces_and_the_worker_goes_on(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise SystemExit("a bug of ours")

    with monkeypatch.context() as patched:
        patched.setattr(pools, "decide", broken)
        pool.submit(flight(lambda: None))
        (ended,) = gathered(pool, 1)
    assert isinstance(ended.error, SystemExit)
    assert pool.running() == []

    pool.submit(flight(lambda: None))
    (ended,) = gathered(pool, 1)
    assert ended.outcome == Ack()


def test_what_no_worker_has_begun_can_be_pulled_back_in_order(pool: Pool) -> None:
    go, begun = threading.Event(), threading.Barrier(3)

    def wait() -> None:
        begun.wait(10)
        go.wait(10)

    for name in "ab":
        pool.submit(flight(wait, name))
    begun.wait(10)
    for name in "cde":
        pool.submit(flight(wait, name))
    assert pool.in_pool == 5

    back = pool.pull_back()

    assert [one.task.id for one in back] == ["c", "d", "e"]
    assert pool.in_pool == 2
    assert {one.task.id for one in pool.running()} == {"a", "b"}
    go.set()
    assert len(gathered(pool, 2)) == 2
    assert pool.in_pool == 0


def test_no_more_run_at_once_than_there_are_threads(pool: Pool) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.005)
        with lock:
            now -= 1

    for _ in range(20):
        pool.submit(flight(count))

    gathered(pool, 20)
    assert most == 2


def test_an_abandoned_flight_is_not_waited_for(pool: Pool) -> None:
    go, begun = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go.wait(10)

    stuck = flight(hang)
    pool.submit(stuck)
    assert begun.wait(10)

    pool.abandon(stuck)

    assert pool.in_pool == 0
    go.set()
    assert gathered(pool, 1) == [stuck]  # it is told apart by `abandoned`
    assert pool.in_pool == 0


def test_a_wake_ends_the_wait(pool: Pool) -> None:
    pool.wake()

    assert pool.gather(60.0) == []


def test_it_stops_when_its_workers_are_idle() -> None:
    pool = Pool(2)
    pool.lease_until = boot_time() + 60
    pool.submit(flight(lambda: None))
    gathered(pool, 1)

    pool.stop()

    eventually(lambda: not any(one.name.startswith("taskbatch_") for one in threading.enumerate()), "their end")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_go_on_with_our_tasks(pool: Pool) -> None:
    """It has a copy of the inbox, and would run what is in it a second time."""
    reading, writing = os.pipe()

    def fork() -> None:
        if os.fork() == 0:
            os.write(writing, b"child ")

    pool.size = 1
    pool.submit(flight(fork))
    for _ in range(5):
        pool.submit(flight(lambda: os.write(writing, b"task ") and None))
    gathered(pool, 6)
    os.close(writing)

    said = b""
    while part := os.read(reading, 1000):  # ends when the child has
        said += part
    os.close(reading)
    os.wait()
    assert sorted(said.split()) == [b"child"] + [b"task"] * 5
