"""close_run: a run that holds nothing ends, with a line in the history."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, full, same_except
from tests.lua.world import World, own


def entry(world: World, run: str, **changed: str) -> dict[str, object]:
    """Return the history's entry of a run that `World.close_run` closed."""
    return {
        "run": run, "result": "success", "stop_reason": "empty", "exit_code": "0", "started_ms": "1000",
        "ended_ms": Near(world.now - 3000, 6000), "duration_us": "2500000", "count": "1", "idle": "0",
        "summary": '{"claimed":0}', **changed,
    }  # fmt: skip


def test_a_run_is_closed(world: World) -> None:
    world.lease("r")
    world.lease("other")
    world.seed(runs__info={"r": "x", "other": "y"}, pending=["p"], totals={"claimed": "7"})
    before, now = world.dump(), world.now

    assert world.close_run("r") == ["closed", 0, 0, 0]

    assert world.dump() == same_except(
        before,
        runs={"other": before["runs"]["other"]},
        runs__info={"other": "y"},
        history=[entry(world, "r")],
        totals={
            "claimed": "7",
            "runs:success": "1",
            "last_run_ms": Near(now),
            "last_run_duration_us": "2500000",
            "last_success_ms": Near(now),
        },
    )


@pytest.mark.parametrize("result", ["interrupted", "error"])
def test_only_a_success_counts_as_one(world: World, result: str) -> None:
    world.lease("r")
    world.seed(totals={"last_success_ms": "5"})
    now = world.now

    world.close_run("r", result=result)

    expected = {f"runs:{result}": "1", "last_run_ms": Near(now), "last_run_duration_us": "2500000"}
    assert world.dump()["totals"] == {"last_success_ms": "5", **expected}


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_run_that_holds_something_is_not_closed(world: World, n: int) -> None:
    world.lease("r")
    world.hold("r", n, "1b", "1a")
    before, lengths = world.dump(), [0, 0, 0]
    lengths[n] = 2

    assert world.close_run("r") == ["held", *lengths]

    assert world.dump() == before


def test_a_run_that_was_reaped_is_not_closed_again(world: World) -> None:
    world.lease("r", -1)
    world.reap("r")
    before = world.dump()

    assert world.close_run("r") == ["gone", 0, 0, 0]

    assert world.dump() == before


def test_a_repeat_changes_nothing(world: World) -> None:
    world.lease("r")
    world.close_run("r")
    before = world.dump()

    assert world.close_run("r") == ["gone", 0, 0, 0]

    assert world.dump() == before


def close_all(world: World, *runs: tuple[str, dict[str, object]]) -> None:
    for run, options in runs:
        world.lease(run)
        world.close_run(run, **options)  # type: ignore[arg-type]


def test_idle_runs_in_a_row_are_one_entry_with_a_count(world: World) -> None:
    close_all(
        world,
        ("a", {"idle": True, "started": 1}),
        ("b", {"idle": True, "started": 2}),
        ("c", {"idle": True, "started": 3}),
    )

    assert world.dump()["history"] == [entry(world, "c", idle="1", count="3", started_ms="1")]
    assert world.dump()["totals"]["runs:success"] == "3"


def test_a_run_that_worked_ends_a_row_of_idle_ones(world: World) -> None:
    close_all(world, ("a", {"idle": True}), ("b", {}), ("c", {"idle": True}), ("d", {}))

    assert [(e["run"], e["idle"], e["count"]) for e in world.dump()["history"]] == [
        ("a", "1", "1"), ("b", "0", "1"), ("c", "1", "1"), ("d", "0", "1"),
    ]  # fmt: skip


def test_idle_runs_that_stopped_for_another_reason_are_kept_apart(world: World) -> None:
    close_all(world, ("a", {"idle": True}), ("b", {"idle": True, "reason": "paused"}))

    assert [(e["run"], e["stop_reason"]) for e in world.dump()["history"]] == [("a", "empty"), ("b", "paused")]


def test_the_history_keeps_its_last_1000_entries(world: World) -> None:
    with world.admin.pipeline() as pipe:
        for n in range(1000):
            pipe.xadd(full("history"), {"run": n})
        pipe.execute()

    close_all(world, ("r", {}))

    history = world.dump()["history"]
    assert len(history) == 1000
    assert (history[0], history[-1]["run"]) == ({"run": "1"}, "r")


@pytest.mark.parametrize("name", ["runs", "history", *own("r")])
def test_a_key_of_another_type_keeps_the_run_open_and_nothing_changes(world: World, name: str) -> None:
    world.lease("r")
    world.seed(runs__info={"r": "x"})
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        world.close_run("r", idle=True)

    assert world.dump() == before


@pytest.mark.parametrize("name", ["totals", "runs:info"])
def test_other_keys_of_another_type_do_not_keep_it_open(world: World, name: str) -> None:
    world.lease("r")
    world.break_type(name)

    assert world.close_run("r")[0] == "closed"

    assert world.dump()[name] == {"foreign"}
    assert "runs" not in world.dump()
