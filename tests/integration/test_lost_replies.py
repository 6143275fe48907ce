"""Commands, replies and connections are lost, at each command a run sends: no task is lost, none is done twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from taskbatch import RateLimit, Task, job
from taskbatch.task import parse
from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from taskbatch.declaration import Job
    from taskbatch.report import Report
    from tests.conftest import StartServer
    from tests.proxy import Proxy

CUTS = ("drop", "reset", "swallow")


class Ledger:
    """Notes which task was started how often."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.starts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._seconds = seconds

    def job(self, name: str = "note", **options: Any) -> Job:
        @job(name, **options)
        def note(task: Task) -> None:
            with self._lock:
                self.starts[task.id] += 1
            time.sleep(self._seconds)

        return note

    def check_once(self, count: int) -> None:
        assert self.starts == {f"{i}": 1 for i in range(count)}


def push(batches: Batches, count: int, kind: str = "note") -> None:
    batches.push(*(task(kind, f"{i}", enqueued_at_ms=1) for i in range(count)))


def check_done(batches: Batches, report: Report, count: int) -> None:
    """All were done, once, and counted once, here and there."""
    assert (report.stop_reason, report.exit_code) == ("empty", 0)
    assert (report.tally.claimed, report.tally.outcomes["succeeded"]) == (count, count)
    totals = batches.totals()
    assert (totals["claimed"], totals["tasks:succeeded:note"], totals["runs:success"]) == (count, count, 1)
    batches.check_base_line()
    assert len(batches.history()) == 1


@pytest.mark.parametrize("action", CUTS)
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("name", ["claim", "settle"])
def test_a_claim_or_settle_is_lost(batches: Batches, proxy: Proxy, name: str, nth: int, action: Any) -> None:
    ledger = Ledger(0.005)
    push(batches, 80)
    happened = proxy.fail(action, name, nth=nth)

    report = batches.run(ledger.job(), url=proxy.url, concurrency=2)

    assert happened.wait(5)
    ledger.check_once(80)
    check_done(batches, report, 80)


@pytest.mark.parametrize("action", CUTS)
@pytest.mark.parametrize(
    "name", ["INFO", "open_run", "SADD", "ZRANGE", "promote", "claim_suspect", "close_run", "HGETALL", "LLEN"]
)
def test_anything_else_is_lost(batches: Batches, proxy: Proxy, name: str, action: Any) -> None:
    ledger = Ledger()
    push(batches, 5)
    batches.wait_until_it_reaps()
    happened = proxy.fail(action, name)

    report = batches.run(ledger.job(), url=proxy.url, lease=3.0)

    assert happened.wait(5)
    ledger.check_once(5)
    check_done(batches, report, 5)


@pytest.mark.parametrize("action", CUTS)
def test_a_wait_is_lost(batches: Batches, proxy: Proxy, action: Any) -> None:
    ledger = Ledger()
    happened = proxy.fail(action, "BLMOVE")

    report = batches.run(ledger.job(), url=proxy.url, wait=0.3)

    assert happened.wait(5)
    assert (report.stop_reason, report.exit_code) == ("empty", 0)


@pytest.mark.parametrize("action", CUTS)
def test_a_renewal_is_lost(batches: Batches, proxy: Proxy, action: Any) -> None:
    ledger = Ledger(1.5)
    push(batches, 1)
    happened = proxy.fail(action, "renew")

    report = batches.run(ledger.job(), url=proxy.url, lease=3.0)

    assert happened.wait(5)
    ledger.check_once(1)
    check_done(batches, report, 1)


@pytest.mark.parametrize("action", CUTS)
def test_a_limiter_s_answer_is_lost(batches: Batches, proxy: Proxy, action: Any) -> None:
    """Nothing limited starts; the tasks come back, at no cost."""
    ledger = Ledger()
    push(batches, 3)
    happened = proxy.fail(action, "rate_limit")

    report = batches.run(ledger.job(rate_limit=RateLimit("100/1h")), url=proxy.url, wait_due=3.0)

    assert happened.wait(5)
    ledger.check_once(3)
    assert (report.tally.outcomes["succeeded"], report.tally.released_by["limit"]) == (3, 3)
    assert report.stop_reason == "empty"


def test_all_claims_are_cut(batches: Batches, proxy: Proxy) -> None:
    """Each one of them did claim, and what it brought is found in the own lists."""
    ledger = Ledger()
    push(batches, 12)
    for nth in range(1, 7):
        proxy.fail("swallow", "claim", nth=nth)

    report = batches.run(ledger.job(), url=proxy.url, concurrency=2)

    ledger.check_once(12)
    check_done(batches, report, 12)


def test_a_failed_attempt_whose_settle_is_lost_is_counted_once(batches: Batches, proxy: Proxy) -> None:
    @job("note")
    def note() -> None:
        raise ValueError("no")

    push(batches, 1)
    proxy.fail("swallow", "settle")

    report = batches.run(note, url=proxy.url)

    again = parse(batches.scheduled()[0][0][1:])
    assert again is not None
    assert again.failures == 1
    assert batches.lengths() == {"scheduled": 1}
    assert (report.tally.claimed, report.tally.outcomes["retried"], report.tally.failed_attempts) == (1, 1, 1)
    assert batches.totals()["tasks:retried:note"] == 1


def test_an_expired_task_that_a_lost_claim_brought_does_not_run(batches: Batches, proxy: Proxy) -> None:
    ledger = Ledger()
    batches.push(task("note", "0", expires_at_ms=batches.now_ms() - 1000))
    proxy.fail("swallow", "claim")

    report = batches.run(ledger.job(), url=proxy.url)

    assert ledger.starts == {}
    assert report.tally.outcomes["expired"] == 1


def test_a_suspect_that_a_lost_claim_brought_runs_alone(batches: Batches, proxy: Proxy) -> None:
    ledger = Ledger()
    batches.redis.lpush(batches.keys.suspects, b"2" + task("note", "0"))
    proxy.fail("swallow", "claim_suspect")

    report = batches.run(ledger.job(), url=proxy.url)

    ledger.check_once(1)
    check_done(batches, report, 1)


def test_a_ghost_of_a_claim_arrives_late(batches: Batches, proxy: Proxy) -> None:
    """The connection ended before the server had read the claim; it carries it out after the run has looked."""
    ledger = Ledger(0.05)
    push(batches, 10)
    happened = proxy.fail("late", "claim", nth=2, seconds=0.3)

    report = batches.run(ledger.job(), url=proxy.url, concurrency=2, wait=1.0)

    assert happened.wait(10)
    ledger.check_once(10)
    check_done(batches, report, 10)


def test_a_ghost_of_a_claim_comes_after_the_end(batches: Batches, proxy: Proxy) -> None:
    """Without a lease it gets nothing."""
    push(batches, 4)
    happened = proxy.fail("late", "claim", nth=1, seconds=1.5)

    batches.run(Ledger().job(), url=proxy.url, max_tasks=2, concurrency=2)

    assert happened.wait(10)
    assert batches.lengths() == {"pending": 2}


def test_a_ghost_of_a_settle_changes_nothing(batches: Batches, proxy: Proxy) -> None:
    ledger = Ledger()
    push(batches, 4)
    happened = proxy.fail("late", "settle", nth=1, seconds=0.5)

    report = batches.run(ledger.job(), url=proxy.url)

    assert happened.wait(10)
    ledger.check_once(4)
    check_done(batches, report, 4)


def test_a_slow_network_is_no_trouble(batches: Batches, proxy: Proxy) -> None:
    ledger = Ledger()
    push(batches, 10)
    for name in ("open_run", "claim", "settle", "close_run"):
        proxy.fail("delay", name, seconds=0.3)

    report = batches.run(ledger.job(), url=proxy.url)

    ledger.check_once(10)
    check_done(batches, report, 10)


@pytest.mark.parametrize("name", ["claim", "settle", "BLMOVE"])
def test_a_black_hole_is_left_behind(batches: Batches, proxy: Proxy, name: str) -> None:
    """The connection stays open and says nothing; a new one works."""
    ledger = Ledger()
    push(batches, 4)
    happened = proxy.fail("hole", name)

    report = batches.run(ledger.job(), url=proxy.url, wait=0.2, redis_timeout=0.5)

    assert happened.wait(5)
    ledger.check_once(4)
    check_done(batches, report, 4)


def test_a_black_hole_that_stays_ends_the_run_in_time(batches: Batches, proxy: Proxy) -> None:
    ledger = Ledger()
    push(batches, 4)
    proxy.fail("hole", "settle")
    proxy.hole = False

    @job("note")
    def note() -> None:
        proxy.hole = True

    report = batches.run(note, url=proxy.url, redis_timeout=1.0, max_runtime=1.0, grace=0.5, concurrency=2)

    assert (report.stop_reason, report.exit_code) == ("redis_lost", 75)
    assert report.duration < 1.0 + 0.5 + 1.0 + 2.0
    assert report.tally.claimed == report.tally.outcomes["lost"] == 2
    assert batches.lengths() == {"pending": 2, "processing": 2}  # for the reaper
    assert ledger.starts == {}


def test_no_server_behind_the_network_is_69(batches: Batches, proxy: Proxy) -> None:
    proxy.hole = True
    push(batches, 1)

    report = batches.run(Ledger().job(), url=proxy.url, redis_timeout=0.5)

    assert (report.exit_code, report.tally.claimed) == (69, 0)
    assert report.duration < 5.0
    assert batches.lengths() == {"pending": 1}


# -- the server itself --------------------------------------------------------------------------------------------


def test_connections_that_are_killed_all_the_time(batches: Batches) -> None:
    ledger = Ledger(0.01)
    admin = batches.server.client()
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.05):
            admin.client_kill_filter(_type="normal", skipme=True)

    push(batches, 300)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        report = batches.run(ledger.job(), concurrency=4)
    finally:
        over.set()
        killer.join()

    batches.redis = batches.server.client()
    ledger.check_once(300)
    assert (report.tally.claimed, report.tally.outcomes["succeeded"]) == (300, 300)
    assert batches.totals()["tasks:succeeded:note"] == 300
    assert batches.lengths() == {}


def test_scripts_that_are_flushed_all_the_time(batches: Batches) -> None:
    ledger = Ledger(0.002)
    admin = batches.server.client()
    over = threading.Event()

    def flush() -> None:
        while not over.wait(0.003):
            admin.script_flush()

    push(batches, 300)
    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        report = batches.run(ledger.job(), concurrency=4)
    finally:
        over.set()
        flusher.join()

    ledger.check_once(300)
    check_done(batches, report, 300)


def test_a_moment_of_readonly(batches: Batches) -> None:
    """As after a failover: refused for a while, then the same server is the master again."""
    ledger = Ledger(0.01)
    admin = batches.server.client()
    begun = threading.Event()

    @job("note")
    def note(task: Task) -> None:
        ledger.starts[task.id] += 1
        begun.set()
        time.sleep(0.01)

    def fail_over() -> None:
        begun.wait(10)
        admin.config_set("replica-read-only", "yes")
        admin.replicaof("127.0.0.1", 1)
        time.sleep(0.5)
        admin.replicaof("NO", "ONE")

    push(batches, 100)
    other = threading.Thread(target=fail_over)
    other.start()
    report = batches.run(note, concurrency=1)
    other.join()

    ledger.check_once(100)
    check_done(batches, report, 100)


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_of_the_server_in_the_middle(own_server: StartServer, crash: bool) -> None:
    """With its log of writes: nothing it had answered for is gone, and the run goes on."""
    server = own_server(appendonly=True, extra=("--appendfsync", "always"))
    batches = Batches(server)
    ledger = Ledger(0.01)
    reports: list[Report] = []
    push(batches, 300)

    thread = threading.Thread(target=lambda: reports.append(batches.run(ledger.job(), concurrency=2)))
    thread.start()
    eventually(lambda: len(ledger.starts) > 50, "the first tasks")
    server.restart(crash=crash)
    thread.join(30)

    (report,) = reports
    batches.redis = server.client()
    ledger.check_once(300)
    check_done(batches, report, 300)


def test_a_server_that_does_not_come_back(own_server: StartServer) -> None:
    server = own_server(appendonly=True)
    batches = Batches(server)
    begun = threading.Event()

    @job("note")
    def note() -> None:
        begun.set()
        time.sleep(0.3)

    push(batches, 4)
    reports: list[Report] = []
    thread = threading.Thread(target=lambda: reports.append(batches.run(note, concurrency=2, lease=3.0)))
    thread.start()
    assert begun.wait(10)
    server.kill()
    thread.join(20)

    (report,) = reports
    assert (report.stop_reason, report.exit_code) == ("redis_lost", 75)
    assert report.duration < 3.0 + 3.0  # no longer than its lease
    assert report.tally.outcomes["lost"] == report.tally.claimed
    server.start()
    batches.redis = server.client()
    left = batches.lengths()
    assert left["pending"] + left["processing"] == 4
