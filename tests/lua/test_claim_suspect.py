"""claim_suspect: one suspect for a run that holds nothing else."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, same_except
from tests.lua.world import World, own

ONE_WINDOW = 3_600_000 * 24 * 365 * 100
"""Period, in ms, of a window from 1970 to 2070."""


@pytest.fixture(autouse=True)
def run_with_a_lease(world: World) -> None:
    world.lease("r")


def test_one_suspect_is_claimed_and_pending_is_not(world: World) -> None:
    world.seed(pending=["p"], recovered=["1r"], suspects=["3b", "2a"])
    before, now = world.dump(), world.now

    assert world.claim_suspect("r") == ["ok", Near(now), 0, 0, 1, -1, 0, 0, "2a"]

    after = {"suspects": ["3b"], "processing:r:2": ["2a"], "totals": {"claimed": "1"}}
    assert world.dump() == {**before, **after}


def test_without_suspects_nothing_changes(world: World) -> None:
    world.seed(pending=["p"])
    before, now = world.dump(), world.now

    assert world.claim_suspect("r") == ["ok", Near(now), 0, 0, 0, -1, 0, 0]

    assert world.dump() == before


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_run_that_holds_anything_gets_none(world: World, n: int) -> None:
    world.seed(suspects=["2a"])
    world.hold("r", n, "1mine")
    before, lengths = world.dump(), [0, 0, 0]
    lengths[n] = 1

    assert world.claim_suspect("r") == ["busy", Near(world.now - 3000, 6000), *lengths, -1, 0, 0]

    assert world.dump() == before


@pytest.mark.parametrize("score", [-5000, 1, None], ids=["being reaped", "expired", "gone"])
def test_without_a_live_lease_nothing_is_claimed(world: World, score: int | None) -> None:
    world.seed(suspects=["2a"])
    world.admin.delete("taskbatch:{q}:runs")
    if score is not None:
        world.seed(runs={"r": score})
    before = world.dump()

    assert world.claim_suspect("r")[0] == "lost"

    assert world.dump() == before


def test_a_paused_queue_gives_none(world: World) -> None:
    world.seed(suspects=["2a"], paused="deploy")
    before = world.dump()

    assert world.claim_suspect("r")[0] == "paused"

    assert world.dump() == before


def test_a_suspect_takes_a_permit_of_the_queue(world: World) -> None:
    world.seed(suspects=["2b", "2a"], config={"limit": f"1 {ONE_WINDOW}"})
    before, now = world.dump(), world.now

    assert world.claim_suspect("r") == ["ok", Near(now), 0, 0, 1, 0, 0, 0, "2a"]

    after = {"suspects": ["2b"], "processing:r:2": ["2a"], "totals": {"claimed": "1"}}
    assert world.dump() == {**before, **after, "limit +ttl": {"w": "0", "n": "1"}}


def test_no_permit_no_suspect(world: World) -> None:
    world.seed(suspects=["2a"], config={"limit": f"1 {ONE_WINDOW}"}, limit={"w": 0, "n": 1})
    before, now = world.dump(), world.now

    assert world.claim_suspect("r") == ["limited", Near(now), 0, 0, 0, 0, ONE_WINDOW, 0]

    assert world.dump() == before


@pytest.mark.parametrize("name", ["runs", "config", "limit", "suspects", *own("r")])
def test_a_key_of_another_type_fails_the_claim_and_nothing_changes(world: World, name: str) -> None:
    world.seed(suspects=["2a"], config={"limit": "9 1000"})
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        world.claim_suspect("r")

    assert world.dump() == before


def test_totals_of_another_type_cost_the_count_and_no_task(world: World) -> None:
    world.seed(suspects=["2a"])
    world.break_type("totals")
    before = world.dump()

    assert world.claim_suspect("r")[8:] == ["2a"]

    assert world.dump() == same_except(before, suspects=None, processing__r__2=["2a"])
