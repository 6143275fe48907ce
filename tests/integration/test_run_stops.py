"""Why a run ends, and with which exit code."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch import Task, job
from taskbatch.task import bare, parse
from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from collections.abc import Iterator


@job("note")
def note() -> None:
    pass


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """What jobs wait for; set at the end of the test, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


# -- paused -------------------------------------------------------------------------------------------------


def test_a_paused_queue_gives_nothing(batches: Batches) -> None:
    batches.push(task("note"))
    batches.redis.lpush(batches.keys.suspects, b"2" + task("note"))
    batches.redis.set(batches.keys.paused, "deploy")

    report = batches.run(note, wait=5.0)

    assert (report.stop_reason, report.exit_code, report.tally.claimed) == ("paused", 0, 0)
    assert report.duration < 1.0
    assert batches.lengths() == {"pending": 1, "suspects": 1}


def test_a_pause_in_the_middle_lets_what_runs_finish(batches: Batches) -> None:
    client = batches.server.client()

    @job("pauser")
    def pauser() -> None:
        client.set(batches.keys.paused, "enough")

    batches.push(task("pauser"), *(task("note", f"{i}") for i in range(5000)))

    report = batches.run(pauser, note, concurrency=1)

    assert report.stop_reason == "paused"
    left = batches.lengths()["pending"]
    assert left + report.tally.outcomes["succeeded"] == 5001
    assert left > 0
    assert not batches.redis.exists(batches.keys.runs)


# -- overlap ------------------------------------------------------------------------------------------------


def test_a_cap_on_runs_is_kept(batches: Batches, go: threading.Event) -> None:
    begun = threading.Event()

    @job("hold")
    def hold() -> None:
        begun.set()
        go.wait(10)

    batches.push(task("hold"))
    thread = threading.Thread(target=batches.run, args=(hold,), kwargs={"max_tasks": 1})
    thread.start()
    assert begun.wait(10)
    batches.push(task("note"))

    one = batches.run(note, max_concurrent_runs=1)
    two = batches.run(note, max_concurrent_runs=2)

    assert (one.stop_reason, one.exit_code, one.tally.claimed) == ("overlap", 0, 0)
    assert one.remaining is not None
    assert (one.remaining.pending, one.remaining.processing) == (1, 1)
    assert (two.stop_reason, two.tally.claimed) == ("empty", 1)
    go.set()
    thread.join(10)
    batches.check_base_line()


def test_the_cap_holds_when_many_start_at_once(batches: Batches, go: threading.Event) -> None:
    reports = []

    @job("hold")
    def hold() -> None:
        go.wait(10)

    def run() -> None:
        reports.append(batches.run(hold, max_concurrent_runs=2, concurrency=1, max_tasks=1))

    batches.push(*(task("hold") for _ in range(8)))
    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(reports) == 6, "those that are refused")
    go.set()
    for thread in threads:
        thread.join(10)

    assert sorted(report.stop_reason for report in reports) == ["max_tasks"] * 2 + ["overlap"] * 6


# -- the time budget ------------------------------------------------------------------------------------------


def test_the_budget_ends_the_run(batches: Batches) -> None:
    @job("nap")
    def nap() -> None:
        time.sleep(0.05)

    batches.push(*(task("nap", f"{i}") for i in range(200)))

    report = batches.run(nap, max_runtime=0.6, concurrency=2)

    assert (report.stop_reason, report.exit_code) == ("max_runtime", 0)
    assert 0.6 <= report.duration < 1.5
    assert batches.lengths() == {"pending": 200 - report.tally.outcomes["succeeded"]}


def test_what_is_cut_off_is_an_interruption_and_no_failure(batches: Batches, go: threading.Event) -> None:
    @job("hold")
    def hold() -> None:
        go.wait(10)

    batches.push(task("hold", "a"))

    report = batches.run(hold, max_runtime=0.3, grace=0.2)

    assert (report.stop_reason, report.exit_code) == ("max_runtime", 0)
    assert report.tally.released_by["shutdown"] == 1
    assert 0.5 <= report.duration < 2.0
    again = parse(batches.redis.lindex(batches.keys.pending, -1))
    assert again is not None
    assert (again.id, again.interruptions, again.failures) == ("a", 1, 0)


def test_what_had_its_whole_timeout_is_a_failure_also_at_the_end(batches: Batches) -> None:
    """It does not react within the 2 s it would have: the budget is over before."""

    @job("hold", timeout=0.2)
    def hold() -> None:
        time.sleep(2)

    batches.push(task("hold", "a"))

    report = batches.run(hold, max_runtime=0.5, grace=0.3)

    assert report.stop_reason == "max_runtime"
    assert report.tally.outcomes["retried"] == 1
    again = parse(batches.scheduled()[0][0][1:])
    assert again is not None
    assert (again.failures, again.interruptions) == (1, 0)
    assert "timeout" in again.last_error


def test_the_grace_lets_what_runs_finish(batches: Batches) -> None:
    @job("nap")
    def nap() -> None:
        time.sleep(0.6)

    batches.push(task("nap"))

    report = batches.run(nap, max_runtime=0.3, grace=5.0)

    assert (report.stop_reason, report.tally.outcomes["succeeded"]) == ("max_runtime", 1)
    batches.check_base_line()


def test_the_twentieth_interruption_is_the_last(batches: Batches, go: threading.Event) -> None:
    @job("hold")
    def hold() -> None:
        go.wait(10)

    batches.push(task("hold", interruptions=19))

    batches.run(hold, max_runtime=0.2, grace=0.0)

    (letter,) = batches.dead()
    assert letter["reason"] == b"interrupted"


def test_a_declared_timeout_that_does_not_fit_is_not_begun(batches: Batches) -> None:
    ran: list[str] = []

    @job("large", timeout=60)
    def large(task: Task) -> None:
        ran.append(task.id)

    @job("small", timeout=1)
    def small(task: Task) -> None:
        ran.append(task.id)

    batches.push(task("large", "l"), task("small", "s"))
    before = batches.now_ms()

    report = batches.run(large, small, max_runtime=5.0, grace=5.0)

    assert ran == ["s"]
    assert report.tally.released_by["no_time"] == 1
    ((entry, due),) = batches.scheduled()
    assert bare(entry)[0] == 0
    assert before + 8_000 < due < before + 11_000  # when this run would have been over


# -- the job's time -------------------------------------------------------------------------------------------


def test_a_job_over_its_timeout_is_a_failed_attempt(batches: Batches) -> None:
    @job("loop", timeout=0.3)
    def loop() -> None:
        while True:
            time.sleep(0.01)

    batches.push(task("loop"), task("note"))

    report = batches.run(loop, note)

    assert (report.stop_reason, report.exit_code) == ("empty", 0)
    assert (report.tally.outcomes["retried"], report.tally.outcomes["succeeded"]) == (1, 1)
    again = parse(batches.scheduled()[0][0][1:])
    assert again is not None
    assert again.last_error == "timed out after 0.3 s"


def test_a_job_that_does_not_react_is_settled_for_it(batches: Batches) -> None:
    """It is in C code: the run lets the others finish, claims nothing more, and says so."""
    ran: list[str] = []

    @job("stuck", timeout=0.2)
    def stuck() -> None:
        time.sleep(4)

    @job("nap")
    def nap(task: Task) -> None:
        time.sleep(1)
        ran.append(task.id)

    batches.push(task("stuck", "s"), *(task("nap", f"{i}") for i in range(20)))

    report = batches.run(stuck, nap, concurrency=2)

    assert (report.stop_reason, report.exit_code) == ("stuck_thread", 75)
    assert report.tally.outcomes["retried"] == 1
    assert report.tally.outcomes["succeeded"] == len(ran) >= 2
    assert batches.lengths() == {"pending": 20 - len(ran), "scheduled": 1}
    assert batches.history()[0]["result"] == "interrupted"


def test_a_late_result_of_a_settled_task_is_ignored(batches: Batches) -> None:
    @job("stuck", timeout=0.2)
    def stuck() -> None:
        time.sleep(2.8)

    @job("nap")
    def nap() -> None:
        time.sleep(3.5)

    batches.push(task("stuck"), task("nap"))

    report = batches.run(stuck, nap, concurrency=2)

    assert report.stop_reason == "stuck_thread"
    assert (report.tally.outcomes["retried"], report.tally.outcomes["succeeded"]) == (1, 1)
    assert batches.totals()["tasks:retried:stuck"] == 1
    assert "tasks:succeeded:stuck" not in batches.totals()


def test_a_long_job_keeps_its_lease(batches: Batches) -> None:
    """Longer than the lease: it is renewed as long as the loop lives."""
    reaped = []

    @job("nap", timeout=60)
    def nap() -> None:
        time.sleep(4.5)

    batches.wait_until_it_reaps()
    batches.push(task("nap"))
    # With one thread there is nothing to claim meanwhile, which would be a sign of life, too.
    thread = threading.Thread(target=lambda: reaped.append(batches.run(nap, lease=3.0, concurrency=1)))
    thread.start()
    eventually(lambda: batches.lengths().get("processing"), "the claim")
    while thread.is_alive():
        assert batches.run(note, lease=3.0).tally.reaped == 0
        thread.join(0.3)

    assert reaped[0].tally.outcomes["succeeded"] == 1
    assert batches.totals()["claimed"] == 1


# -- the lease and Redis ----------------------------------------------------------------------------------------


def test_a_lease_that_ran_out_and_was_not_taken_away_is_renewed(batches: Batches) -> None:
    client = batches.server.client()

    @job("slow")
    def slow() -> None:
        (run,) = client.zrange(batches.keys.runs, 0, -1)
        client.zadd(batches.keys.runs, {run: batches.now_ms() - 1})

    batches.push(task("slow"), *(task("note") for _ in range(5)))

    report = batches.run(slow, note, concurrency=1)

    assert (report.stop_reason, report.exit_code, report.tally.outcomes["succeeded"]) == ("empty", 0, 6)
    batches.check_base_line()


def test_a_lost_lease_ends_the_run(batches: Batches) -> None:
    client = batches.server.client()

    @job("thief")
    def thief() -> None:
        """Do what a reaper does to an expired run: mark it, and take what it holds."""
        (run,) = client.zrange(batches.keys.runs, 0, -1)
        client.zadd(batches.keys.runs, {run: -1})
        for n in range(3):
            client.delete(batches.keys.processing(run.decode(), n))

    batches.push(task("thief"), *(task("note") for _ in range(5)))

    report = batches.run(thief, note, concurrency=1)

    assert (report.stop_reason, report.exit_code) == ("lease_lost", 75)
    assert report.tally.outcomes["lost"] == 1
    assert batches.lengths() == {"pending": 5}
    assert "tasks:succeeded:thief" not in batches.totals()


@pytest.mark.parametrize("noticed", [False, True], ids=["at the settle", "while they run"])
def test_flushall_in_the_middle_resurrects_nothing(
    batches: Batches,
    go: threading.Event,
    caplog: pytest.LogCaptureFixture,
    noticed: bool,
) -> None:
    begun = threading.Barrier(3)

    @job("hold")
    def hold() -> None:
        begun.wait(10)
        go.wait(10)

    reports = []
    batches.push(task("hold", "0"), task("hold", "1"))
    # A thread that is free makes the run ask for more ten times a second.
    thread = threading.Thread(target=lambda: reports.append(batches.run(hold, concurrency=3 if noticed else 2)))
    thread.start()
    begun.wait(10)
    batches.redis.flushall()
    if noticed:
        eventually(lambda: "the lease is lost" in caplog.text, "that it is noticed")
    go.set()
    thread.join(10)

    assert (reports[0].stop_reason, reports[0].exit_code) == ("lease_lost", 75)
    assert reports[0].tally.outcomes["lost"] == 2
    assert batches.redis.keys("*") == []


def test_an_unreachable_server_is_69(batches: Batches) -> None:
    report = batches.run(note, url="redis://127.0.0.1:1/0")

    assert (report.exit_code, report.stop_reason, report.tally.claimed) == (69, "error", 0)
    assert report.error is not None
    assert "127.0.0.1:1" in report.error
    assert report.remaining is None


def test_jobs_that_cannot_be_loaded_are_78_before_anything_is_touched(batches: Batches) -> None:
    report = batches.run(note, job("note")(lambda: None))

    assert report.exit_code == 78
    assert batches.names() == set()


def test_a_newer_schema_is_78_and_nothing_is_touched(batches: Batches) -> None:
    batches.push(task("note"))
    batches.redis.hset(batches.keys.config, "schema", 2)

    report = batches.run(note)

    assert report.exit_code == 78
    assert report.error is not None
    assert "schema 2" in report.error
    assert batches.names() == {"pending", "config"}


def test_the_progress_is_told_and_an_error_of_ours_is_70(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    batches.push(task("note"), task("note"))
    monkeypatch.setattr("taskbatch.pool.decide", broken)

    report = batches.run(note)

    assert report.exit_code == 70
    assert report.error is not None
    assert "a bug of ours" in report.error
    assert batches.lengths() in ({"processing": 2}, {"processing": 1, "pending": 1})
