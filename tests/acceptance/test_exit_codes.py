"""The table of exit codes, row by row: 0, 1, 2 and 70. The rows of 69, 75 and 78 have files of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.ending import PENDING, failed_with, once, only_problem, problem, told, with_jobs
from tests.daemon import wait_until
from tests.lua.keyspace import dump

if TYPE_CHECKING:
    import redis

    from tests.program import Cli
    from tests.servers import Server


@pytest.fixture
def client(server: Server) -> redis.Redis:
    return server.client()


@pytest.fixture
def here(cli: Cli, server: Server) -> Cli:
    return with_jobs(cli, server.url)


def enqueue(cli: Cli, *arguments: str) -> None:
    done = cli("enqueue", *arguments)
    assert done.returncode == 0, done.stderr


# -- 0: done


def test_0_when_nothing_is_left(here: Cli) -> None:
    enqueue(here, "ok")
    enqueue(here, "again")

    done = here("run")

    report = told(done)
    assert (done.returncode, report["stop_reason"]) == (0, "empty")
    assert (report["succeeded"], report["retried"], report["remaining"]["scheduled"]) == (1, 1, 1)


def test_0_when_the_queue_is_paused(here: Cli, client: redis.Redis) -> None:
    enqueue(here, "ok")
    here("queue", "pause", "upgrade")

    done = here("run")

    assert (done.returncode, told(done)["stop_reason"], told(done)["claimed"]) == (0, "paused", 0)
    assert client.llen(PENDING) == 1


def test_0_when_enough_runs_are_at_work(here: Cli) -> None:
    enqueue(here, "hold", '"gate"')
    first = here.spawn("run")
    wait_until((here.cwd / "held").exists, seconds=20, what="the first run")

    done = here("run", "--max-concurrent-runs", "1")

    report = told(done)
    assert (done.returncode, report["stop_reason"], report["claimed"]) == (0, "overlap", 0)
    assert report["remaining"]["processing"] == 1
    (here.cwd / "gate").touch()
    assert told(first.wait())["succeeded"] == 1


@pytest.mark.parametrize(
    ("option", "value", "reason"), [("--max-tasks", "1", "max_tasks"), ("--max-runtime", "1s", "max_runtime")]
)
def test_0_when_a_budget_was_reached(here: Cli, client: redis.Redis, option: str, value: str, reason: str) -> None:
    here("enqueue", "nap", "-", stdin="1.2\n1.2\n")

    done = here("run", "-c", "1", option, value)

    assert (done.returncode, told(done)["stop_reason"], told(done)["succeeded"]) == (0, reason, 1)
    assert client.llen(PENDING) == 1


# -- 1: --fail-on


@pytest.mark.parametrize(
    ("kind", "never", "dead", "failed"), [("ok", 0, 0, 0), ("again", 0, 0, 1), ("bad", 0, 1, 1), ("expired", 0, 0, 0)]
)
def test_1_after_what_fail_on_names(here: Cli, kind: str, never: int, dead: int, failed: int) -> None:
    """A task that has expired is dead-lettered too, but the run did not fail at it."""
    codes = []
    for fail_on in ("never", "dead", "failed"):
        if kind == "expired":
            enqueue(here, "ok", "--expires", "1ms")
        else:
            enqueue(here, kind)
        done = here("run", "--fail-on", fail_on)
        assert told(done)["expired"] == (kind == "expired")
        codes.append(done.returncode)
        assert done.returncode in {0, 1}, done.stderr

    assert codes == [never, dead, failed]


# -- --remaining-exit-code


def test_the_code_of_remaining_tasks_counts_what_could_be_claimed(here: Cli) -> None:
    enqueue(here, "ok")
    enqueue(here, "ok")
    enqueue(here, "ok", "--delay", "1h")

    first = here("run", "--max-tasks", "1", "--remaining-exit-code", "42")
    second = here("run", "--max-tasks", "1", "--remaining-exit-code", "42")

    assert (first.returncode, told(first)["remaining"]["pending"]) == (42, 1)
    assert (second.returncode, told(second)["remaining"]["scheduled"]) == (0, 1)


def test_what_fail_on_names_goes_before_what_remains(here: Cli) -> None:
    enqueue(here, "bad")
    enqueue(here, "ok")

    done = here("run", "-c", "1", "--max-tasks", "1", "--remaining-exit-code", "42", "--fail-on", "dead")

    assert (done.returncode, told(done)["remaining"]["pending"]) == (1, 1)


# -- 2: usage

BAD_USAGE = {
    ("run", "--no-such-option"): "No such option '--no-such-option'",
    ("ruin",): "No such command 'ruin'",
    (): "Missing command",
    ("run", "stray"): "unexpected extra argument (stray)",
    ("run", "--wait", "5 minutes"): "--wait",
    ("run", "--lease", "10"): "--lease",
    ("run", "--lease", "1s"): "--lease must be at least 3s",
    ("run", "--max-tasks", "0"): "--max-tasks",
    ("run", "--concurrency", "many"): "--concurrency",
    ("run", "--wait", "2m", "--max-runtime", "1m"): "--wait is longer than --max-runtime",
    ("run", "--remaining-exit-code", "256"): "--remaining-exit-code must be from 0 to 255",
    ("run", "--queue", "no such name"): "queue name 'no such name'",
    ("run", "--queue", "a", "--queue", "a"): "a queue is named twice",
    ("run", "--fail-on", "monday"): "'monday' is not one of 'never', 'dead', 'failed'",
    ("run", "--report", "yaml"): "--report",
    ("enqueue",): "Missing argument 'TYPE'",
    ("enqueue", "ok", '{"a": '): "the payload is not JSON",
    ("enqueue", "ok", "NaN"): "the payload is not JSON",
    ("enqueue", "ok", "1", "--header", "nonsense"): "--header",
    ("enqueue", "ok", "--delay", "soon"): "--delay",
    ("enqueue", "ok", "--file", "no-such-file"): "no-such-file",
    ("enqueue", "ok", "--raw"): "--raw needs --file",
    ("enqueue", "no such type"): "no such type",
    ("queue", "limit", "many"): "many",
    ("queue", "purge"): "--yes",
    ("dead", "redrive"): "--all",
    ("metrics", "--push"): "--push needs --pushgateway or --textfile",
}


@once
@pytest.mark.parametrize("arguments", BAD_USAGE, ids=" ".join)
def test_2_for_bad_usage(here: Cli, client: redis.Redis, arguments: tuple[str, ...]) -> None:
    client.lpush(PENDING, b"not touched")
    before = dump(client)

    done = here(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert BAD_USAGE[arguments] in only_problem(done)
    assert dump(client) == before


@once
def test_2_for_a_bad_variable(here: Cli) -> None:
    done = here("run", env={"TASKBATCH_MAX_RUNTIME": "soon"})

    assert (done.returncode, done.stdout) == (2, "")
    assert "TASKBATCH_MAX_RUNTIME" in only_problem(done) or "--max-runtime" in only_problem(done)


# -- 70: an error of ours


def test_70_for_an_internal_error_before_anything_is_claimed(here: Cli, client: redis.Redis) -> None:
    """No input makes one that we know of. So the jobs break the standard library under the program."""
    with (here.cwd / "jobs.py").open("a") as file:
        file.write("\nos.uname = None\n")
    enqueue(here, "ok")
    before = dump(client)

    done = here("run")

    assert "internal error: TypeError" in failed_with(done, 70)
    assert dump(client) == before
    assert "Traceback" in here("run", "-v").stderr


def test_70_for_an_internal_error_in_the_middle_and_nothing_is_lost(here: Cli, client: redis.Redis) -> None:
    with (here.cwd / "jobs.py").open("a") as file:
        file.write("""
import random

@job("breaks")
def breaks():
    random.Random.uniform = None
    raise ValueError("now the backoff cannot be chosen")
""")
    enqueue(here, "breaks")

    done = here("run", "--lease", "3s")

    assert done.returncode == 70
    assert re.fullmatch("internal error: .*TypeError.*", problem(done))
    assert told(done)["error"] == problem(done)
    (held,) = client.keys("taskbatch:{default}:processing:*")
    assert client.llen(held) == 1
    assert client.zcard("taskbatch:{default}:runs") == 1
