"""purge: all tasks that wait in one place are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lua.keyspace import same_except

if TYPE_CHECKING:
    from tests.lua.world import World

WAITING = {
    "pending": ["b", "a"],
    "recovered": ["1b", "1a"],
    "suspects": ["2b", "2a"],
    "scheduled": {"0b": 1, "0a": 2},
    "dead": [{"task": "b"}, {"task": "a"}],
}


def purge(world: World, name: str) -> int:
    return int(world.call("purge", [name, "totals"], []))


@pytest.mark.parametrize("name", WAITING)
def test_one_place_is_emptied_and_counted(world: World, name: str) -> None:
    world.seed(**WAITING)
    world.hold("r", 0, "mine")
    before = world.dump()

    assert purge(world, name) == 2

    assert world.dump() == same_except(before, **{name: None}, totals={"deleted": "2"})


def test_an_empty_place_changes_nothing(world: World) -> None:
    world.seed(recovered=["1a"])
    before = world.dump()

    assert purge(world, "pending") == 0

    assert world.dump() == before


def test_what_holds_no_tasks_is_not_deleted(world: World) -> None:
    world.break_type("pending")
    before = world.dump()

    assert purge(world, "pending") == 0

    assert world.dump() == before


def test_totals_of_another_type_do_not_matter(world: World) -> None:
    world.seed(pending=["a"])
    world.break_type("totals")

    assert purge(world, "pending") == 1

    assert world.dump() == {"totals": {"foreign"}}
