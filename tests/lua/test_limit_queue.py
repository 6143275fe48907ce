"""limit_queue: the limit that every claim from a queue obeys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import same_except

if TYPE_CHECKING:
    from tests.lua.world import World


def limit_queue(world: World, limit: str) -> int:
    return int(world.call("limit_queue", ["config", "limit"], [limit]))


def test_a_limit_is_set(world: World) -> None:
    world.seed(config={"schema": "1"})

    assert limit_queue(world, "50 1000") == 1

    assert world.dump() == {"config": {"schema": "1", "limit": "50 1000"}}


def test_another_count_does_not_undo_what_was_claimed_in_this_window(world: World) -> None:
    world.seed(config={"limit": "50 1000"}, limit={"w": 5, "n": 50})

    assert limit_queue(world, "60 1000") == 1

    assert world.dump() == {"config": {"limit": "60 1000"}, "limit": {"w": "5", "n": "50"}}


@pytest.mark.parametrize("limit", ["0 1000", "5 0", "5", "many 1000", "5 1000 more", "-5 1000"])
def test_what_is_no_limit_is_refused(world: World, limit: str) -> None:
    world.seed(config={"limit": "50 1000"}, limit={"w": 5, "n": 50})
    before = world.dump()

    with pytest.raises(ResponseError, match="limit_queue: not <count> <period ms>"):
        limit_queue(world, limit)

    assert world.dump() == before


def test_another_period_starts_with_all_its_permits(world: World) -> None:
    world.seed(config={"schema": "1", "limit": "50 1000"}, limit={"w": 5, "n": 50})

    assert limit_queue(world, "50 60000") == 1

    assert world.dump() == {"config": {"schema": "1", "limit": "50 60000"}}


def test_the_same_limit_again_gives_no_permits_back(world: World) -> None:
    world.seed(config={"limit": "50 1000"}, limit={"w": 5, "n": 50})
    before = world.dump()

    assert limit_queue(world, "50 1000") == 1

    assert world.dump() == before


def test_a_limit_is_removed(world: World) -> None:
    world.seed(config={"schema": "1", "limit": "50 1000"}, limit={"w": 5, "n": 50}, pending=["a"])
    before = world.dump()

    assert limit_queue(world, "") == 1
    assert limit_queue(world, "") == 1

    assert world.dump() == same_except(before, config={"schema": "1"}, limit=None)


@pytest.mark.parametrize("name", ["config", "limit"])
@pytest.mark.parametrize("limit", ["", "50 1000"])
def test_a_key_of_another_type_is_not_touched_and_nothing_changes(world: World, name: str, limit: str) -> None:
    world.seed(config={"limit": "5 1000"}, limit={"w": 5, "n": 5})
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match=f"WRONGTYPE taskbatch:{{q}}:{name}"):
        limit_queue(world, limit)

    assert world.dump() == before
