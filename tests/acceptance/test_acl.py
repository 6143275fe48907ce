"""The users of docs/redis.md: each can do its work, and needs every right it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskbatch import Client, Task
from tests.acceptance.ending import PENDING, once, problem, told
from tests.daemon import wait_until
from tests.lua.keyspace import dump

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from tests.monitoring import Pushgateway
    from tests.program import Cli
    from tests.servers import Server

DOCUMENT = Path(__file__).parents[2] / "docs" / "redis.md"
USERS = {
    words[2]: words[3:]
    for block in re.findall(r"^```acl\nACL (SETUSER .*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    if (words := ["ACL", *block.split()])
}
JOBS = """
import time
from pathlib import Path
from taskbatch import RateLimit, Task, job

@job("ok")
def ok(task: Task): Path(f"done-{task.id}").touch()

@job("limited", rate_limit=RateLimit("1/1h"))
def limited(task: Task): Path(f"done-{task.id}").touch()

@job("bad", max_attempts=1)
def bad(): raise ValueError("no good")

@job("fails-late", max_attempts=1)
def fails_late():
    Path("held").touch()
    while not Path("gate").exists():
        time.sleep(0.01)
    raise ValueError("no good")

@job("again")
def again(): raise ValueError("not yet")
"""
DEAD = "taskbatch:{default}:dead"


def rights(user: str) -> list[str]:
    return [word[1:] for word in USERS[user] if word.startswith("+")]


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    client = server.client()
    yield client
    server.client().execute_command("ACL", "DELUSER", *USERS)


@pytest.fixture
def here(cli: Cli) -> Cli:
    (cli.cwd / "jobs.py").write_text(JOBS)
    cli.env.update(TASKBATCH_REPORT="json", TASKBATCH_LEASE="3s")
    return cli


def become(cli: Cli, server: Server, user: str, *, without: str = "") -> None:
    """Create the user on the server as the document has it, but `without` one right, and let the program be it."""
    words = [word for word in USERS[user] if not without or word != f"+{without}"]
    server.client().execute_command("ACL", "SETUSER", user, "reset", *words)
    (password,) = (word[1:] for word in words if word.startswith(">"))
    cli.env.update(
        TASKBATCH_REDIS_URL=f"redis://127.0.0.1:{server.port}/0",
        TASKBATCH_REDIS_USER=user,
        TASKBATCH_REDIS_PASSWORD=password,
    )


def fill(server: Server, client: redis.Redis) -> list[str]:
    """Let there be something of everything that a run, a reaper or a person can meet; returns the ids of all tasks."""
    with Client(server.url) as producer:
        for number, kind in enumerate(("ok", "again", "bad", "limited", "limited", "nobody-knows-it")):
            producer.enqueue(kind, id=f"plain-{number}")
        producer.enqueue("ok", id="unique", unique_key="k")
        producer.enqueue("ok", id="due", delay=0.001)
        producer.enqueue("ok", id="later", delay=3600)
    client.hset("taskbatch:{default}:config", "limit", "100 1000")
    client.xadd(DEAD, {"task": task("dead"), "reason": "failed", "error": "", "run": "r", "at": 1})
    # Runs that crashed: one that is still known, and one whose lists are all there is.
    client.zadd("taskbatch:{default}:runs", {"gone": 1000})
    client.hset("taskbatch:{default}:runs:info", mapping={"gone": "{}", "forgotten": "{}"})
    for n, digit in enumerate((b"", b"1", b"2")):
        client.lpush(f"taskbatch:{{default}}:processing:gone:{n}", digit + task(f"crashed-{n}"))
    client.lpush("taskbatch:{default}:processing:lost:0", task("orphan"))
    # Before it is up for a lease, nobody reaps.
    wait_until(lambda: client.info("server")["uptime_in_seconds"] >= 3, seconds=10, what="uptime")
    plain = [f"plain-{number}" for number in range(6)]
    return [*plain, "unique", "due", "later", "dead", "crashed-0", "crashed-1", "crashed-2", "orphan"]


def task(name: str) -> bytes:
    return bytes(Task(id=name, type="ok").SerializeToString())


def lost(cli: Cli, client: redis.Redis, ids: list[str]) -> list[str]:
    """Return which tasks are neither in Redis nor done."""
    there = repr(dump(client))
    return [name for name in ids if name not in there and not (cli.cwd / f"done-{name}").exists()]


def codes(cli: Cli, *commands: str) -> list[int]:
    return [cli(*command.split()).returncode for command in commands]


def test_a_run_can_do_all_it_has_to(here: Cli, server: Server, client: redis.Redis, pushgateway: Pushgateway) -> None:
    fill(server, client)
    become(here, server, "taskbatch-run")
    # At the gateway's own expense: the lock around a push is in Redis, too.
    here.env["TASKBATCH_PUSHGATEWAY"] = pushgateway.url

    done = here("run", "--max-concurrent-runs", "5", "--wait", "100ms")
    again = here("drain")
    reaped = here("reap", "--json")
    shown = here("metrics")

    assert (done.returncode, again.returncode, reaped.returncode, shown.returncode) == (0, 0, 0, 0), done.stderr
    assert (told(done)["dead"], told(done)["pushed"], told(done)["reaped"]) == (1, True, 3)
    assert told(done)["succeeded"] == 7
    assert "no permissions" not in done.stderr + again.stderr + reaped.stderr + shown.stderr
    assert 'taskbatch_tasks_total{outcome="succeeded",queue="default",type="ok"} 6.0' in shown.stdout
    assert client.smembers("taskbatch:queues") == {b"default"}


def test_a_producer_can_enqueue(here: Cli, server: Server, client: redis.Redis) -> None:
    become(here, server, "taskbatch-enqueue")

    plain = here("enqueue", "ok")
    later = here("enqueue", "ok", "--delay", "1h", "--expires", "2h")
    first = here("enqueue", "ok", "--unique-key", "k")
    second = here("enqueue", "ok", "--unique-key", "k")
    many = here("enqueue", "ok", "-", stdin="1\n2\n")

    assert [one.returncode for one in (plain, later, first, second, many)] == [0, 0, 0, 0, 0], plain.stderr
    assert first.stdout == second.stdout
    assert (client.llen(PENDING), client.zcard("taskbatch:{default}:scheduled")) == (4, 1)
    assert client.smembers("taskbatch:queues") == {b"default"}


def test_a_producer_of_one_queue_can_do_that_and_nothing_else(here: Cli, server: Server, client: redis.Redis) -> None:
    become(here, server, "taskbatch-mail")

    assert codes(here, "enqueue ok -q mail", "enqueue ok", "enqueue ok -q mail --delay 1s", "status") == [0, 78, 78, 78]
    assert client.keys("*") == [b"taskbatch:{mail}:pending"]


OPERATIONS = (
    "status",
    "metrics",
    "dead list",
    "dead show dead",
    "queue pause why",
    "queue resume",
    "queue limit 5/1s",
    "queue limit",
    "queue limit none",
    "dead redrive --all",
    "queue purge --yes",
    "queue purge --state scheduled --yes",
    "queue purge --state dead --yes",
    "dead delete --all --yes",
)


def test_a_person_can_look_after_queues_and_not_run_them(here: Cli, server: Server, client: redis.Redis) -> None:
    fill(server, client)
    become(here, server, "taskbatch-operator")

    assert codes(here, *OPERATIONS) == [0] * len(OPERATIONS)
    assert not client.exists(PENDING, DEAD, "taskbatch:{default}:scheduled")
    assert codes(here, "run") == [78]


def test_who_may_look_can_change_nothing(here: Cli, server: Server, client: redis.Redis) -> None:
    fill(server, client)
    before = dump(client)
    become(here, server, "taskbatch-viewer")

    assert codes(here, "status", "metrics", "dead list", "dead show dead", "queue limit") == [0] * 5
    assert codes(here, "enqueue ok", "queue pause why", "dead redrive --all", "queue purge --yes", "run") == [78] * 5
    assert dump(client) == before


IDLE = "drain -q other"
NEEDED_BY = {"smembers": ["reap"], "scan": ["reap"], "xrevrange": [IDLE, IDLE], "xdel": [IDLE, IDLE]}
"""Which commands need a right that a run needs not if it finds something: idle after idle are one in the history."""

UNNOTICED = {
    "sadd": "the list of queues is for people",
    "lrange": "only asked for after a lost reply",
    "eval": "only needed when Redis has forgotten a script",
    "set": "only in the lock of a push, which is never worth a run",
}


@once
@pytest.mark.parametrize("right", [right for right in rights("taskbatch-run") if right not in UNNOTICED])
def test_a_run_without_one_of_its_rights_says_which(here: Cli, server: Server, client: redis.Redis, right: str) -> None:
    ids = fill(server, client)
    become(here, server, "taskbatch-run", without=right)

    for command in NEEDED_BY.get(right, ["run --max-concurrent-runs 5 --wait 50ms"]):
        done = here(*command.split())

    assert done.returncode == 78, done.stderr
    assert re.search(rf"\b{right}\b", problem(done), re.IGNORECASE)
    assert lost(here, client, ids) == []


def test_a_right_that_is_taken_away_in_the_middle_loses_nothing(here: Cli, server: Server, client: redis.Redis) -> None:
    become(here, server, "taskbatch-run")
    with Client(server.url) as producer:
        producer.enqueue("fails-late", id="late")
    run = here.spawn("run")
    wait_until((here.cwd / "held").exists, seconds=20, what="the start of the task")
    client.execute_command("ACL", "SETUSER", "taskbatch-run", "-xadd")
    (here.cwd / "gate").touch()

    done = run.wait()

    assert done.returncode == 78, done.stderr
    assert re.search(r"\bxadd\b", problem(done), re.IGNORECASE)
    assert lost(here, client, ["late"]) == []


@once
@pytest.mark.parametrize("right", [right for right in rights("taskbatch-enqueue") if right not in {"sadd", "eval"}])
def test_a_producer_without_one_of_its_rights_enqueues_nothing(
    here: Cli, server: Server, client: redis.Redis, right: str
) -> None:
    become(here, server, "taskbatch-enqueue", without=right)
    options = [] if right == "lpush" else ["--delay", "1h", "--expires", "2h", "--unique-key", "k"]

    done = here("enqueue", "ok", *options)

    assert (done.returncode, done.stdout) == (78, "")
    assert re.search(rf"\b{right}\b", problem(done), re.IGNORECASE)
    assert dump(client) == {}


LOOKS_AT = {
    **dict.fromkeys(("time", "llen", "lindex", "zcard", "zrange", "xlen", "get", "pttl", "hgetall"), "status"),
    "smembers": "status",
    "hget": "queue limit",
    "hset": "queue limit 5/1s",
    "hdel": "queue limit none",
    **dict.fromkeys(("evalsha", "type", "set"), "queue pause why"),
    "del": "queue resume",
    "unlink": "queue purge --yes",
    "xrange": "dead show dead",
    "xrevrange": "dead list",
    **dict.fromkeys(("xdel", "lpush"), "dead redrive --all"),
}
"""For each right of a person, a command that needs it."""


@once
@pytest.mark.parametrize("right", [right for right in rights("taskbatch-operator") if right not in {"eval", "hincrby"}])
def test_a_person_without_one_of_the_rights_is_told_which(
    here: Cli, server: Server, client: redis.Redis, right: str
) -> None:
    fill(server, client)
    before = dump(client)
    become(here, server, "taskbatch-operator", without=right)

    done = here(*LOOKS_AT[right].split())

    assert (done.returncode, done.stdout) == (78, "")
    assert re.search(rf"\b{right}\b", problem(done), re.IGNORECASE)
    assert dump(client) == before
