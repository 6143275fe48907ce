"""redrive: one dead letter goes back into the queue."""

from __future__ import annotations

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from tests.lua.keyspace import full, same_except
from tests.lua.world import World, full_server


@pytest.fixture
def letter(world: World) -> str:
    """Return the id of a dead letter among others."""
    world.seed(dead=[{"task": "x"}])
    entry: bytes = world.admin.xadd(full("dead"), {"task": "a", "reason": "failed"})
    world.seed(dead=[{"task": "y"}], pending=["p"])
    return entry.decode()


def redrive(world: World, entry: str, task: str = "a'") -> int:
    return int(world.call("redrive", ["dead", "pending", "totals"], [entry, task]))


def test_it_goes_behind_what_waits(world: World, letter: str) -> None:
    before = world.dump()

    assert redrive(world, letter) == 1

    after = {"pending": ["a'", "p"], "dead": [{"task": "x"}, {"task": "y"}], "totals": {"redriven": "1"}}
    assert world.dump() == {**before, **after}


def test_a_repeat_changes_nothing(world: World, letter: str) -> None:
    redrive(world, letter)
    before = world.dump()

    assert redrive(world, letter) == 0

    assert world.dump() == before


def test_no_such_letter_changes_nothing(world: World, letter: str) -> None:
    before = world.dump()

    assert redrive(world, "1-1") == 0

    assert world.dump() == before


@pytest.mark.parametrize("name", ["dead", "pending"])
def test_a_key_of_another_type_keeps_the_letter_and_nothing_changes(world: World, letter: str, name: str) -> None:
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match=f"WRONGTYPE taskbatch:{{q}}:{name}"):
        redrive(world, letter)

    assert world.dump() == before


def test_what_is_no_id_changes_nothing(world: World, letter: str) -> None:
    before = world.dump()

    with pytest.raises(ResponseError):
        redrive(world, "that one")

    assert world.dump() == before


def test_totals_of_another_type_cost_no_task(world: World, letter: str) -> None:
    world.break_type("totals")
    before = world.dump()

    assert redrive(world, letter) == 1

    assert world.dump() == same_except(before, pending=["a'", "p"], dead=[{"task": "x"}, {"task": "y"}])


def test_a_full_server_refuses_it_and_nothing_changes(world: World, letter: str) -> None:
    before = world.dump()

    with full_server(world), pytest.raises(OutOfMemoryError):
        redrive(world, letter)

    assert world.dump() == before
