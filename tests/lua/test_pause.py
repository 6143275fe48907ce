"""pause: nothing is claimed from a queue until it goes on."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import full
from tests.lua.world import World, sleep_ms


def pause(world: World, reason: str, ms: int = 0) -> int:
    return int(world.call("pause", ["paused"], [reason, ms]))


def test_a_pause_lasts_until_told_otherwise(world: World) -> None:
    world.seed(pending=["a"])

    assert pause(world, "deploy") == 1
    assert world.dump() == {"pending": ["a"], "paused": "deploy"}

    assert pause(world, "") == 1
    assert world.dump() == {"pending": ["a"]}


def test_a_pause_can_end_by_itself(world: World) -> None:
    assert pause(world, "deploy", 60_000) == 1

    assert world.dump() == {"paused +ttl": "deploy"}
    assert 50_000 < world.admin.pttl(full("paused")) <= 60_000


def test_a_short_pause_is_soon_over(world: World) -> None:
    pause(world, "deploy", 20)
    sleep_ms(40)

    assert world.dump() == {}


def test_a_new_pause_replaces_the_old_one_and_its_end(world: World) -> None:
    pause(world, "deploy", 60_000)

    pause(world, "incident")

    assert world.dump() == {"paused": "incident"}


def test_a_queue_that_was_not_paused_just_goes_on(world: World) -> None:
    assert pause(world, "") == 0

    assert world.dump() == {}


@pytest.mark.parametrize("reason", ["deploy", ""])
def test_a_key_of_another_type_is_not_touched(world: World, reason: str) -> None:
    world.break_type("paused")

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        pause(world, reason)

    assert world.dump() == {"paused": {"foreign"}}


def test_a_duration_that_makes_no_sense_changes_nothing(world: World) -> None:
    with pytest.raises(ResponseError):
        pause(world, "deploy", "long")  # type: ignore[arg-type]

    assert world.dump() == {}
