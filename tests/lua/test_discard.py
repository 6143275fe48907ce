"""discard: one dead letter is deleted for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import full, same_except

if TYPE_CHECKING:
    from tests.lua.world import World


@pytest.fixture
def letter(world: World) -> str:
    """Return the id of a dead letter beside another."""
    entry: bytes = world.admin.xadd(full("dead"), {"task": "a", "reason": "failed"})
    world.seed(dead=[{"task": "y"}], pending=["p"])
    return entry.decode()


def discard(world: World, entry: str) -> int:
    return int(world.call("discard", ["dead", "totals"], [entry]))


def test_the_letter_is_gone_and_counted(world: World, letter: str) -> None:
    before = world.dump()

    assert discard(world, letter) == 1

    assert world.dump() == {**before, "dead": [{"task": "y"}], "totals": {"deleted": "1"}}


def test_a_repeat_changes_nothing(world: World, letter: str) -> None:
    discard(world, letter)
    before = world.dump()

    assert discard(world, letter) == 0

    assert world.dump() == before


def test_a_key_of_another_type_is_not_touched(world: World, letter: str) -> None:
    world.break_type("dead")
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        discard(world, letter)

    assert world.dump() == before


def test_totals_of_another_type_do_not_matter(world: World, letter: str) -> None:
    world.break_type("totals")
    before = world.dump()

    assert discard(world, letter) == 1

    assert world.dump() == same_except(before, dead=[{"task": "y"}])
