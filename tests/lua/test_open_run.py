"""open_run: the lease is there before the first claim."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, same_except
from tests.lua.world import LEASE, TYPES, World


def test_a_run_gets_its_lease_and_leaves_its_name(world: World) -> None:
    world.seed(pending=["b", "a"])
    before, now = world.dump(), world.now

    assert world.open_run("r", info='{"host":"h"}') == ["ok", Near(now)]

    assert world.dump() == same_except(
        before, runs={"r": Near(now + LEASE)}, runs__info={"r": '{"host":"h"}'}, config={"schema": "1"}
    )


def test_repeating_it_extends_the_lease_and_nothing_else(world: World) -> None:
    world.open_run("r", lease=1000)
    before, now = world.dump(), world.now

    assert world.open_run("r", lease=LEASE)[0] == "ok"

    assert world.dump() == same_except(before, runs={"r": Near(now + LEASE)})


def test_repeating_it_does_not_take_a_run_back_from_the_reaper(world: World) -> None:
    world.seed(runs={"r": -5000}, runs__info={"r": "old"}, config={"schema": "1"})
    before = world.dump()

    world.open_run("r", info="new")

    assert world.dump() == before


def test_a_newer_schema_is_not_touched(world: World) -> None:
    world.seed(config={"schema": "2"})
    before = world.dump()

    assert world.open_run("r", schema=1) == ["schema", "2"]

    assert world.dump() == before


def test_an_older_schema_stays_until_somebody_migrates(world: World) -> None:
    world.seed(config={"schema": "1", "limit": "5 1000"})
    before, now = world.dump(), world.now

    assert world.open_run("r", schema=2)[0] == "ok"

    assert world.dump() == same_except(before, runs={"r": Near(now + LEASE)}, runs__info={"r": "{}"})


def test_the_cap_counts_runs_that_are_alive(world: World) -> None:
    world.lease("alive")
    world.lease("expired", -1)
    world.seed(runs={"reaped": -5000})
    before = world.dump()

    assert world.open_run("r", cap=1) == ["overlap", 1]
    assert world.dump() == before

    assert world.open_run("r", cap=2)[0] == "ok"


def test_a_run_does_not_count_against_itself(world: World) -> None:
    world.open_run("r", cap=1)

    assert world.open_run("r", cap=1)[0] == "ok"


@pytest.mark.parametrize("name", ["runs", "runs:info", "config", *TYPES])
def test_a_key_of_another_type_is_named_and_nothing_changes(world: World, name: str) -> None:
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match=f"WRONGTYPE taskbatch:{{q}}:{name} is a set"):
        world.open_run("r")

    assert world.dump() == before
