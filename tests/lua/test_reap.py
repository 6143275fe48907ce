"""reap: what an expired run left behind moves one step on, in chunks."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, full, same_except
from tests.lua.world import LEASE, World, outcome, own


def crashed(world: World, info: str = "") -> dict[str, object]:
    """Return the history's entry for the crashed run `r`."""
    return {
        "run": "r", "result": "crashed", "stop_reason": "crashed", "exit_code": "",
        "ended_ms": Near(world.now - 3000, 6000), "count": "1", "info": info, "reaped_by": "reaper",
    }  # fmt: skip


def test_everything_moves_one_step_on_and_the_run_is_gone(world: World) -> None:
    world.lease("r", -1)
    world.lease("other")
    world.hold("r", 0, "b", "a")
    world.hold("r", 1, "1d", "1c")
    world.hold("r", 2, "3f", "2e")
    world.seed(runs__info={"r": "where", "other": "x"}, pending=["p"], recovered=["1x"], suspects=["2x"])
    before, now = world.dump(), world.now

    assert world.reap("r") == ["done", 2, 3, 1]

    assert world.dump() == same_except(
        before,
        processing__r__0=None,
        processing__r__1=None,
        processing__r__2=None,
        recovered=["1b", "1a", "1x"],
        suspects=["2d", "2c", "3e", "2x"],
        dead=[
            {
                "task": "f",
                "reason": "crashed",
                "error": "4 runs died while holding this task",
                "run": "r",
                "at": Near(now),
            }
        ],
        runs={"other": before["runs"]["other"]},
        runs__info={"other": "x"},
        totals={"reaped:recovered": "2", "reaped:suspects": "3", "reaped:dead": "1", "runs:crashed": "1"},
        history=[crashed(world, "where")],
    )


def test_a_run_with_a_valid_lease_is_left_alone(world: World) -> None:
    world.lease("r", 200)
    world.hold("r", 0, "a")
    before = world.dump()

    assert world.reap("r") == ["live", 0, 0, 0]

    assert world.dump() == before


def test_a_run_that_held_nothing_just_ends(world: World) -> None:
    world.lease("r", -1)

    assert world.reap("r") == ["done", 0, 0, 0]

    assert world.dump() == {"totals": {"runs:crashed": "1"}, "history": [crashed(world)]}


def test_reaping_again_changes_nothing(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "a")
    world.reap("r")
    before = world.dump()

    assert world.reap("r") == ["done", 0, 0, 0]

    assert world.dump() == before


def test_the_first_chunk_takes_the_lease_away_for_good(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "c", "b", "a")
    world.seed(pending=["p"])

    assert world.reap("r", 1) == ["more", 1, 0, 0]

    before = world.dump()
    assert before["runs"] == {"r": Near(-world.now, 5000)}
    assert world.renew("r") == 0
    assert world.claim("r")[0] == "lost"
    assert world.claim_suspect("r")[0] == "lost"
    assert world.close_run("r")[0] == "held"
    assert world.dump() == before


def test_two_reapers_share_the_work(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 0, *reversed("abcde"))

    answers = [world.reap("r", 2) for _ in range(4)]

    assert answers == [["more", 2, 0, 0], ["more", 2, 0, 0], ["done", 1, 0, 0], ["done", 0, 0, 0]]
    assert world.dump()["recovered"] == ["1e", "1d", "1c", "1b", "1a"]
    assert world.dump()["totals"] == {"reaped:recovered": "5", "runs:crashed": "1"}


def test_a_chunk_that_leaves_tasks_in_two_lists_is_not_the_last(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "a")
    world.hold("r", 1, "1c", "1b")

    assert world.reap("r", 1) == ["more", 0, 1, 0]

    assert "r" in world.dump()["runs"]
    assert [world.reap("r", 1), world.reap("r", 1)] == [["more", 0, 1, 0], ["done", 1, 0, 0]]


def test_the_run_may_settle_between_two_chunks(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "b", "a")
    world.reap("r", 1)

    assert world.settle("r", outcome(0, "a", "ack"), outcome(0, "b", "ack"))[4] == "01"

    assert world.reap("r")[0] == "done"
    assert world.dump()["recovered"] == ["1a"]


def test_order_is_kept_from_claim_to_claim(world: World) -> None:
    world.seed(pending=[f"{n:02}" for n in reversed(range(20))])
    world.lease("r")
    world.claim("r", 10)
    world.lease("r", -1)
    while world.reap("r", 3)[0] == "more":
        pass
    world.lease("next")

    assert world.claim("next", 20)[8:] == [f"1{n:02}" for n in range(10)] + [f"{n:02}" for n in range(10, 20)]


def test_bytes_bound_a_chunk_but_never_to_nothing(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "c" * 60, "b" * 60, "a" * 500)

    answers = [world.reap("r", max_bytes=100) for _ in range(2)]

    assert answers == [["more", 1, 0, 0], ["done", 2, 0, 0]]


def cpu_seconds(world: World) -> float:
    used = world.admin.info("cpu")
    return float(used["used_cpu_user_main_thread"]) + float(used["used_cpu_sys_main_thread"])


def test_20000_orphans_of_one_run_never_hold_the_server_up(world: World) -> None:
    world.lease("r", -1)
    for n in range(20):
        world.hold("r", 0, *(f"{n:02}{m:04}" + "x" * 300 for m in range(1000)))

    costs: list[float] = []
    status = "more"
    while status == "more":
        before = cpu_seconds(world)
        status = world.reap("r")[0]
        costs.append(cpu_seconds(world) - before)

    # By the server's own CPU time, which a neighbour on a shared machine may still stretch once or twice.
    assert sorted(costs)[-3] <= 0.010
    assert len(costs) > 20
    assert world.admin.llen(full("recovered")) == 20_000
    assert world.dump()["totals"] == {"reaped:recovered": "20000", "runs:crashed": "1"}


def test_the_crash_ladder(world: World) -> None:
    """Four runs die holding one task: pending, recovered, suspects, suspects, dead."""
    world.seed(pending=["culprit"])
    places = []

    for run in ("r1", "r2", "r3", "r4"):
        world.lease(run)
        if world.claim(run)[8:] == []:
            assert len(world.claim_suspect(run)[8:]) == 1
        world.lease(run, -1)
        assert world.reap(run)[0] == "done"
        places.append({key: value for key, value in world.dump().items() if key in {"recovered", "suspects"}})

    assert places == [{"recovered": ["1culprit"]}, {"suspects": ["2culprit"]}, {"suspects": ["3culprit"]}, {}]
    (letter,) = world.dump()["dead"]
    assert (letter["task"], letter["reason"], letter["run"]) == ("culprit", "crashed", "r4")


@pytest.mark.parametrize(
    ("n", "entry", "place"),
    [(1, "\n\x01a", "2\n\x01a"), (2, "", "2"), (1, "0a", "1a"), (1, "1\x00\xff", "2\x00\xff")],
    ids=["no digit", "empty", "digit 0", "binary"],
)
def test_not_a_byte_of_a_task_is_lost(world: World, n: int, entry: str, place: str) -> None:
    world.lease("r", -1)
    world.hold("r", n, entry)

    world.reap("r")

    assert world.dump()["suspects"] == [place]


def test_a_digit_beyond_the_ladder_is_dead(world: World) -> None:
    world.lease("r", -1)
    world.hold("r", 2, "9a")

    assert world.reap("r") == ["done", 0, 0, 1]

    assert world.dump()["dead"][0]["task"] == "a"


def test_tasks_of_a_run_without_an_entry_get_a_lease_and_then_go_on(world: World) -> None:
    world.hold("r", 0, "a")
    before, now = world.dump(), world.now

    assert world.reap("r") == ["noted", 0, 0, 0]
    assert world.dump() == same_except(before, runs={"r": Near(now + LEASE)})
    assert world.reap("r") == ["live", 0, 0, 0]

    world.lease("r", -1)
    assert world.reap("r") == ["done", 1, 0, 0]


def test_a_run_without_an_entry_and_without_tasks_leaves_no_name_behind(world: World) -> None:
    world.seed(runs__info={"r": "x", "other": "y"})

    assert world.reap("r") == ["done", 0, 0, 0]

    assert world.dump() == {"runs:info": {"other": "y"}}


@pytest.mark.parametrize("name", ["runs", "recovered", "suspects", "dead", "history", *own("r")])
def test_a_key_of_another_type_fails_the_chunk_and_nothing_changes(world: World, name: str) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "a")
    world.hold("r", 1, "1b")
    world.hold("r", 2, "2c", "3d")
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        world.reap("r")

    assert world.dump() == before


@pytest.mark.parametrize("name", ["totals", "runs:info"])
def test_keys_beside_the_tasks_of_another_type_cost_no_task(world: World, name: str) -> None:
    world.lease("r", -1)
    world.hold("r", 0, "a")
    world.break_type(name)

    assert world.reap("r") == ["done", 1, 0, 0]

    after = world.dump()
    assert (after["recovered"], after[name]) == (["1a"], {"foreign"})
    assert after.keys() == {"recovered", "history", "totals", name}


def test_the_history_keeps_its_last_1000_entries(world: World) -> None:
    with world.admin.pipeline() as pipe:
        for n in range(1000):
            pipe.xadd(full("history"), {"run": n})
        pipe.execute()
    world.lease("r", -1)

    world.reap("r")

    history = world.dump()["history"]
    assert len(history) == 1000
    assert (history[0], history[-1]["run"]) == ({"run": "1"}, "r")
