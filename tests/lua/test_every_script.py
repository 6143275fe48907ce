"""What holds for every file in lua/: its header, its tests, forgotten scripts, a full server, a cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ResponseError

from taskbatch.scripts import Call
from tests.daemon import free_port
from tests.lua.keyspace import full, same_except, text
from tests.lua.world import LEASE, LOTS, World, full_server, outcome, own

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import StartServer

HERE = Path(__file__).parent
FILES = sorted((HERE.parents[1] / "lua").glob("*.lua"))
NAMES = [file.stem for file in FILES]

TESTED_TOGETHER = {"push_unlock": "push_lock"}
MAY_FAIL_WHEN_FULL = {"enqueue", "redrive"}


def test_there_are_scripts() -> None:
    assert {"claim", "settle", "reap"} <= set(NAMES)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_the_header_says_what_it_is_what_it_takes_and_what_it_returns(file: Path) -> None:
    first, *lines = file.read_text().splitlines()
    header = []
    for line in lines:
        if not line.startswith("-- "):
            break
        header.append(line)

    assert first == ("#!lua" if file.stem in MAY_FAIL_WHEN_FULL else "#!lua flags=allow-oom")
    assert not re.match("-- (KEYS|ARGV|returns)", header[0]), "the first line says what it does"
    words = [line.split()[1] for line in header]
    assert "KEYS" in words
    assert "returns" in words
    takes_arguments = "ARGV[" in file.read_text() or "#ARGV" in file.read_text()
    assert ("ARGV" in words) == takes_arguments


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_test_file_of_its_name(name: str) -> None:
    assert (HERE / f"test_{TESTED_TOGETHER.get(name, name)}.py").exists()


def life(world: World) -> None:
    """Call every script of a queue once, each doing its full work."""

    def letter() -> str:
        (entry, _), *_ = world.admin.xrange(full("dead"))
        return str(text(entry))

    world.call("limit_queue", ["config", "limit"], ["1000 1000"])
    world.open_run("r")
    for name in "abcdef":
        world.enqueue(name, name, unique=name)
    assert world.claim("r", 4)[8:] == ["a", "b", "c", "d"]
    world.enqueue("g", "g", delay=1)
    assert world.renew("r") == 1
    assert (
        world.settle(
            "r",
            outcome(0, "a", "ack", unique="11 a", tally="t tasks:succeeded:t", duration=1, latency=1, window="0"),
            outcome(0, "b", "schedule", stored="0b'", detail=1),
            outcome(0, "c", "dead", detail="failed"),
            outcome(0, "d", "return"),
            unique=["unique:a"],
        )[4]
        == "1111"
    )
    assert world.close_run("r")[0] == "closed"
    assert world.call("redrive", ["dead", "pending", "totals"], [letter(), "c'"]) == 1
    world.promote()
    for crash in range(1, 5):
        run = f"crash{crash}"
        world.open_run(run)
        claimed = world.claim(run, 1) if crash <= 2 else world.claim_suspect(run)
        assert len(claimed) == 9
        world.lease(run, -1)
        assert world.reap(run)[0] == "done"
    assert world.call("discard", ["dead", "totals"], [letter()]) == 1
    assert world.call("purge", ["pending", "totals"], []) > 0
    assert world.call("pause", ["paused"], ["deploy", 0]) == 1
    assert world.call("push_lock", ["totals:push"], ["me", 1000]) == "taken"
    assert world.call("push_unlock", ["totals:push"], ["me", 0]) == "done"
    state = "taskbatch:limit:{job}:"
    assert world.call("rate_limit", [state], [1, 1000, 0, 2])[1:3] == [0, 1]
    assert world.call("rate_limit_gcra", [state + "g"], [1, 1000, 0, 2, 1])[1:3] == [0, 1]


def test_a_life_calls_every_script(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[str] = set()
    exchange = world.exchange

    def record(*calls: Call) -> list[Any]:
        called.update(call.script for call in calls)
        return exchange(*calls)

    monkeypatch.setattr(world, "exchange", record)

    life(world)

    assert called == set(NAMES)


def test_scripts_run_on_a_cluster(own_server: StartServer) -> None:
    # Without a port of its own the bus takes one 10,000 higher, which not every port leaves room for.
    server = own_server(extra=["--cluster-enabled", "yes", "--cluster-port", str(free_port())])
    world = World(server)
    world.admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    while b"cluster_state:ok" not in world.admin.execute_command("CLUSTER", "INFO"):
        pass

    life(world)

    world.close()


def test_a_script_that_touches_a_key_it_did_not_declare_is_noticed(world: World) -> None:
    world.link.call("EVAL", "redis.pcall('DEL', 'taskbatch:{q}:pending')", 0)

    with pytest.raises(AssertionError, match="did not declare"):
        world.renew("r")


# scripts the server has forgotten


def test_forgotten_scripts_are_sent_again(world: World) -> None:
    world.open_run("r")
    world.seed(pending=["a"])
    assert world.claim("r")[8:] == ["a"]
    world.admin.script_flush("SYNC")

    assert world.settle("r", outcome(0, "a", "ack"))[4] == "1"
    assert world.renew("r") == 1


@pytest.mark.parametrize("known", ["none", "the first", "the second"])
def test_forgotten_scripts_in_a_pipeline_run_once_each(world: World, known: str) -> None:
    world.lease("r")
    world.hold("r", 0, "held")
    world.seed(pending=["next"])
    queue_keys = ["runs", "paused", "config", "limit", "scheduled", "pending", "recovered", "suspects", "totals"]
    settle_keys = ["scheduled", "pending", "recovered", "suspects", "dead", "totals", "limit"]
    settle = Call("settle", [full(key) for key in [*settle_keys, *own("r")]], ["r", 1, *outcome(0, "held", "ack")])
    claim = Call("claim", [full(key) for key in [*queue_keys, *own("r")]], ["r", 5, LOTS])
    before = world.dump()
    world.admin.script_flush("SYNC")
    if known == "the first":
        world.settle("nobody")
    if known == "the second":
        world.claim("nobody")

    settled, claimed = world.exchange(settle, claim)

    assert text(settled)[4] == "1"
    assert text(claimed)[8:] == ["next"]
    after = same_except(before, pending=None, processing__r__0=["next"], totals={"claimed": "1"})
    assert world.dump() == after


# a server without memory


def test_a_full_server_still_drains(world: World) -> None:
    world.seed(pending=["d", "c", "b", "a"], scheduled={"0e": 1}, suspects=["2s"])
    world.lease("other", -1)
    world.hold("other", 0, "o")
    with full_server(world):
        assert world.open_run("r")[0] == "ok"
        assert world.claim("r", 4)[8:] == ["e", "a", "b", "c"]
        assert world.renew("r") == 1
        settled = world.settle(
            "r",
            outcome(0, "e", "ack"),
            outcome(0, "a", "schedule", stored="0a", detail=1),
            outcome(0, "b", "dead", detail="failed"),
            outcome(0, "c", "return"),
        )
        assert settled[4] == "1111"
        assert world.claim_suspect("r")[8:] == ["2s"]
        assert world.settle("r", outcome(2, "2s", "ack"))[4] == "1"
        assert world.reap("other") == ["done", 1, 0, 0]
        assert world.promote() >= 0
        assert world.close_run("r") == ["closed", 0, 0, 0]
        assert world.call("rate_limit", ["taskbatch:limit:{j}:"], [1, LEASE, 0, 1])[1:] == [0, 1]
        assert world.call("rate_limit_gcra", ["taskbatch:limit:{j}:g"], [1, LEASE, 0, 1, 1])[1:] == [0, 1]
        assert world.call("pause", ["paused"], ["full", 0]) == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda world: world.reap("r"),
        lambda world: world.claim("r"),
        lambda world: world.settle("r", outcome(0, "a", "ack")),
    ],
    ids=["reap", "claim", "settle"],
)
def test_a_server_that_lost_everything_gets_nothing_back(world: World, act: Callable[[World], object]) -> None:
    world.open_run("r")
    world.hold("r", 0, "a")
    world.admin.flushall()

    act(world)

    assert world.dump() == {}


def test_a_read_only_server_is_an_error_and_no_answer(own_server: StartServer) -> None:
    server = own_server()
    world = World(server)
    world.lease("r")
    world.seed(pending=["a"])
    world.admin.execute_command("REPLICAOF", "127.0.0.1", 1)

    with pytest.raises(ResponseError):
        world.claim("r")

    assert world.dump()["pending"] == ["a"]
    world.close()
