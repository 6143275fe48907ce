"""renew: a lease is extended, unless it has been taken away."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, same_except
from tests.lua.world import LEASE, World


def test_a_lease_is_extended(world: World) -> None:
    world.lease("r", 1000)
    world.lease("other", 500)
    before, now = world.dump(), world.now

    assert world.renew("r") == 1

    assert world.dump() == same_except(before, runs={"r": Near(now + LEASE), "other": before["runs"]["other"]})


def test_an_expired_lease_that_nobody_took_is_extended(world: World) -> None:
    world.lease("r", -5000)
    now = world.now

    assert world.renew("r") == 1

    assert world.dump() == {"runs": {"r": Near(now + LEASE)}}


def test_a_run_that_is_being_reaped_gets_nothing(world: World) -> None:
    world.seed(runs={"r": -5000})
    before = world.dump()

    assert world.renew("r") == 0

    assert world.dump() == before


def test_a_run_without_an_entry_gets_none(world: World) -> None:
    world.lease("other")
    before = world.dump()

    assert world.renew("r") == 0

    assert world.dump() == before


def test_a_key_of_another_type_is_not_touched(world: World) -> None:
    world.break_type("runs")
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        world.renew("r")

    assert world.dump() == before
