"""Exit code 75: a signal, a lost lease, a lost Redis, a stuck thread; handed back, or left for the reaper."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.ending import PENDING, problem, told, with_jobs
from tests.daemon import wait_until

if TYPE_CHECKING:
    from tests.conftest import StartServer
    from tests.program import Background, Cli
    from tests.servers import Server

RUNS = "taskbatch:{default}:runs"


@pytest.fixture
def here(cli: Cli, server: Server) -> Cli:
    return with_jobs(cli, server.url)


def holding(cli: Cli, *arguments: str) -> Background:
    """Start a run and return it when it is in the middle of its one task."""
    assert cli("enqueue", "hold", '"gate"').returncode == 0
    run = cli.spawn("run", *arguments)
    wait_until((cli.cwd / "held").exists, seconds=20, what="the start of the task")
    return run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_75_when_a_running_job_was_handed_back(here: Cli, server: Server, number: signal.Signals) -> None:
    client = server.client()
    run = holding(here, "--grace", "200ms")

    run.signal(number)
    done = run.wait(10)

    report = told(done)
    assert (done.returncode, report["stop_reason"], report["released_by"]["shutdown"]) == (75, "signal", 1)
    assert (client.llen(PENDING), client.zcard(RUNS)) == (1, 0)
    (here.cwd / "gate").touch()
    assert told(here("run"))["succeeded"] == 1


def test_0_when_a_signal_found_nothing_to_hand_back(here: Cli, server: Server) -> None:
    run = holding(here, "--grace", "20s")

    run.signal(signal.SIGTERM)
    (here.cwd / "gate").touch()
    done = run.wait(10)

    assert (done.returncode, told(done)["stop_reason"], told(done)["succeeded"]) == (0, "signal", 1)


def test_75_when_the_lease_was_lost(here: Cli, server: Server) -> None:
    """A machine that was paused for too long: somebody else has taken over when it goes on."""
    client = server.client()
    run = holding(here, "--lease", "3s", "--grace", "200ms")
    run.signal(signal.SIGSTOP)
    wait_until(lambda: "recovered" in here("reap", "--lease", "3s").stdout and client.llen(RECOVERED) == 1,
               seconds=30, what="the reaper")  # fmt: skip

    run.signal(signal.SIGCONT)
    done = run.wait(10)

    report = told(done)
    assert (done.returncode, report["stop_reason"], report["lost"]) == (75, "lease_lost", 1)
    assert client.llen(RECOVERED) == 1
    (here.cwd / "gate").touch()
    assert told(here("run"))["succeeded"] == 1
    assert client.hget("taskbatch:{default}:totals", "tasks:succeeded:hold") == b"1"


RECOVERED = "taskbatch:{default}:recovered"


def test_75_when_redis_is_lost_and_the_next_run_goes_on_where_it_ended(here: Cli, own_server: StartServer) -> None:
    server = own_server(appendonly=True)
    here.env["TASKBATCH_REDIS_URL"] = server.url
    run = holding(here, "--lease", "3s", "--grace", "1s")

    server.kill()
    began = time.monotonic()
    (here.cwd / "gate").touch()
    done = run.wait(30)

    assert time.monotonic() - began < 3 + 1 + 2 + 1
    report = told(done)
    assert (done.returncode, report["stop_reason"], report["succeeded"], report["lost"]) == (75, "redis_lost", 0, 1)
    assert "Redis" in problem(done)

    server.start()
    wait_until(lambda: told(here("run", "--lease", "3s"))["succeeded"] == 1, seconds=30, what="the reaper")


def test_75_when_a_thread_is_stuck(here: Cli, server: Server) -> None:
    """Not even its timeout ends it: it sleeps in C. The task is settled, the process leaves without it."""
    here("enqueue", "stuck")
    here("enqueue", "ok")

    done = here("run", timeout=15)

    report = told(done)
    assert (done.returncode, report["stop_reason"]) == (75, "stuck_thread")
    assert (report["retried"], report["succeeded"] + report["remaining"]["pending"]) == (1, 1)
    assert server.client().zcard(RUNS) == 0
