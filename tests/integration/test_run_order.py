"""In which order a run takes what: suspects alone, recovered first, several queues in turn, K tasks at most."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from taskbatch import RateLimit, Task, job
from tests.batches import Batches, task

if TYPE_CHECKING:
    import pytest

    from taskbatch.declaration import Job


class Crowd:
    """A job that notes who runs, and how many ran beside each."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.order: list[str] = []
        self.beside: dict[str, int] = {}
        self._now: set[str] = set()
        self._lock = threading.Lock()
        self._seconds = seconds

    @property
    def job(self) -> Job:
        @job("note")
        def note(task: Task) -> None:
            with self._lock:
                self.order.append(task.id)
                self._now.add(task.id)
                for name in self._now:
                    self.beside[name] = max(self.beside.get(name, 0), len(self._now) - 1)
            time.sleep(self._seconds)
            with self._lock:
                self._now.remove(task.id)

        return note


def test_recovered_goes_before_pending(batches: Batches) -> None:
    crowd = Crowd(0)
    batches.push(*(task("note", f"p{i}") for i in range(3)))
    for i in range(3):
        batches.redis.lpush(batches.keys.recovered, b"1" + task("note", f"r{i}"))

    batches.run(crowd.job, concurrency=1)

    assert crowd.order == ["r0", "r1", "r2", "p0", "p1", "p2"]
    batches.check_base_line()


def test_suspects_run_first_and_alone(batches: Batches) -> None:
    crowd = Crowd()
    batches.push(*(task("note", f"p{i}") for i in range(20)))
    batches.redis.lpush(batches.keys.recovered, b"1" + task("note", "r"))
    for i in range(3):
        batches.redis.lpush(batches.keys.suspects, b"2" + task("note", f"s{i}"))

    batches.run(crowd.job, concurrency=8)

    assert crowd.order[:3] == ["s0", "s1", "s2"]
    assert [crowd.beside[f"s{i}"] for i in range(3)] == [0, 0, 0]
    assert len(crowd.order) == 24
    assert max(crowd.beside.values()) > 0  # the others do share the threads
    batches.check_base_line()


def test_a_suspect_stays_alone_when_its_time_is_over(batches: Batches) -> None:
    """Suspects have a quarter of the budget; the one that runs then still runs alone."""
    crowd = Crowd(0.5)
    batches.redis.lpush(batches.keys.suspects, b"2" + task("note", "s0"))
    batches.push(task("note", "p0"))

    batches.run(crowd.job, max_runtime=1.2, grace=5.0)

    assert crowd.order == ["s0", "p0"]
    assert crowd.beside == {"s0": 0, "p0": 0}


def test_many_suspects_leave_time_for_the_others(batches: Batches) -> None:
    crowd = Crowd(0.1)
    for i in range(30):
        batches.redis.lpush(batches.keys.suspects, b"2" + task("note", f"s{i}"))
    batches.push(task("note", "p0"))

    report = batches.run(crowd.job, max_runtime=1.2, grace=5.0)

    assert crowd.order.index("p0") < 6
    assert len(crowd.order) > crowd.order.index("p0") + 1  # and has another go at them before it is over
    assert report.stop_reason == "max_runtime"
    assert all(crowd.beside[name] == 0 for name in crowd.order)


def test_a_suspect_that_falls_due_is_found_before_the_end(batches: Batches) -> None:
    crowd = Crowd(0)
    batches.redis.zadd(batches.keys.scheduled, {b"2" + task("note", "s0"): 1})

    report = batches.run(crowd.job)

    assert crowd.order == ["s0"]
    assert report.stop_reason == "empty"
    batches.check_base_line()


def test_k_counts_started_tasks_only(batches: Batches) -> None:
    ran: list[str] = []

    @job("slow", rate_limit=RateLimit("2/1000h"))
    def slow(task: Task) -> None:
        ran.append(task.id)

    @job("note")
    def note(task: Task) -> None:
        ran.append(task.id)

    batches.push(*(task("slow", f"s{i}") for i in range(20)), *(task("other", f"u{i}") for i in range(5)))
    batches.push(*(task("note", f"n{i}") for i in range(20)))

    report = batches.run(slow, note, max_tasks=10, concurrency=2)

    assert len(ran) == 10
    assert sorted(ran)[8:] == ["s0", "s1"]
    assert (report.stop_reason, report.tally.outcomes["succeeded"]) == ("max_tasks", 10)
    assert batches.lengths() == {"pending": 12, "scheduled": 23}


def test_k_is_never_exceeded(batches: Batches) -> None:
    crowd = Crowd(0)
    batches.push(*(task("note", f"{i}") for i in range(300)))

    for _ in range(3):
        report = batches.run(crowd.job, max_tasks=70, remaining_exit_code=9)
        assert report.tally.claimed == 70

    assert len(set(crowd.order)) == 210
    assert report.exit_code == 9
    assert batches.lengths() == {"pending": 90}


def test_nothing_is_hoarded(batches: Batches) -> None:
    """A run holds what its threads run, and no more, as long as it does not know how long that takes."""
    go = threading.Event()
    held: list[int] = []

    @job("note")
    def note() -> None:
        go.wait(10)

    batches.push(*(task("note", f"{i}") for i in range(50)))
    thread = threading.Thread(target=batches.run, args=(note,), kwargs={"concurrency": 4})
    thread.start()
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            held.append(batches.lengths().get("processing", 0))
    finally:
        go.set()
        thread.join(10)

    assert max(held) == 4


def test_what_was_claimed_ahead_and_cannot_start_goes_back_in_order(batches: Batches) -> None:
    """Short tasks first, so that the run claims ahead; then long ones, so that it was wrong."""
    order: list[str] = []

    @job("quick")
    def quick() -> None:
        pass

    @job("long")
    def long(task: Task) -> None:
        order.append(task.id)
        time.sleep(1.5)

    batches.push(*(task("quick") for _ in range(200)), *(task("long", f"{i}") for i in range(4)))

    report = batches.run(quick, long, concurrency=2, max_tasks=204)

    assert sorted(order) == ["0", "1", "2", "3"]
    assert sorted(order[:2]) == ["0", "1"]
    assert report.tally.released_by["no_time"] == 2
    assert report.tally.outcomes["succeeded"] == 204


def test_several_queues_share_one_run(batches: Batches) -> None:
    crowd = Crowd(0.02)
    for queue in "abc":
        batches.push(*(task("note", f"{queue}{i}") for i in range(40)), queue=queue)

    report = batches.run(crowd.job, queues=("a", "b", "c"), concurrency=2)

    assert len(crowd.order) == 120
    assert report.stop_reason == "empty"
    assert {name[0] for name in crowd.order[:40]} == {"a", "b", "c"}  # in turn, not one after the other
    for queue in "abc":
        assert batches.lengths(queue) == {}
        assert batches.totals(queue)["claimed"] == 40


def test_fresh_runs_do_not_all_begin_at_the_same_queue(batches: Batches) -> None:
    first = set()
    for _ in range(20):
        crowd = Crowd(0)
        for queue in "ab":
            batches.push(task("note", queue), queue=queue)
        batches.run(crowd.job, queues=("a", "b"), max_tasks=1, concurrency=1)
        first.add(crowd.order[0])
        batches.server.flush()

    assert first == {"a", "b"}


def test_a_paused_and_a_limited_queue_do_not_hold_up_the_third(batches: Batches) -> None:
    crowd = Crowd(0)
    for queue in "abc":
        batches.push(*(task("note", f"{queue}{i}") for i in range(50)), queue=queue)
    batches.redis.set(batches.keys_of("a").paused, "deploy")
    batches.redis.hset(batches.keys_of("b").config, "limit", "5 3600000000")

    report = batches.run(crowd.job, queues=("a", "b", "c"))

    assert report.stop_reason == "empty"
    assert report.duration < 5.0
    assert batches.lengths("a") == {"pending": 50}
    assert batches.lengths("b") == {"pending": 45}
    assert batches.lengths("c") == {}


def test_many_queues_come_to_an_end(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when asking all of them once takes longer than one of them is taken to be dry."""
    monkeypatch.setattr("taskbatch.holding.SHORTEST_REST", 0.0)
    crowd = Crowd(0)
    queues = tuple(f"q{i}" for i in range(20))
    batches.push(task("note", "x"), queue="q7")

    report = batches.run(crowd.job, queues=queues, max_runtime=10.0)

    assert crowd.order == ["x"]
    assert (report.stop_reason, report.duration < 5.0) == ("empty", True)
