"""claim: tasks move from the queue to a run that has a live lease."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, same_except
from tests.lua.world import World, own


@pytest.fixture(autouse=True)
def run_with_a_lease(world: World) -> None:
    world.lease("r")


def reply(world: World, status: str, lengths: list[int], *, at: object = 0, recovered: int = 0) -> list[object]:
    return [status, Near(world.now - 3000, 6000), *lengths, -1, at, recovered]


def test_the_longest_waiting_are_claimed(world: World) -> None:
    world.seed(pending=["d", "c", "b", "a"])
    before, expected = world.dump(), reply(world, "ok", [2, 0, 0])

    assert world.claim("r", 2) == [*expected, "a", "b"]

    after = {"pending": ["d", "c"], "processing:r:0": ["b", "a"], "totals": {"claimed": "2"}}
    assert world.dump() == {**before, **after}


def test_an_empty_queue_gives_nothing_and_changes_nothing(world: World) -> None:
    before, expected = world.dump(), reply(world, "ok", [0, 0, 0])

    assert world.claim("r") == expected

    assert world.dump() == before


def test_recovered_go_before_pending_and_stay_apart(world: World) -> None:
    world.seed(pending=["d", "c"], recovered=["1b", "1a"])
    before, expected = world.dump(), reply(world, "ok", [1, 2, 0], recovered=2)

    assert world.claim("r", 3) == [*expected, "1a", "1b", "c"]

    after = {"pending": ["d"], "processing:r:0": ["c"], "processing:r:1": ["1b", "1a"], "totals": {"claimed": "3"}}
    assert world.dump() == same_except(before | after, recovered=None)


def test_suspects_are_left_alone(world: World) -> None:
    world.seed(suspects=["2a"])
    before = world.dump()

    assert world.claim("r") == reply(world, "ok", [0, 0, 0])

    assert world.dump() == before


def test_what_the_run_holds_already_is_counted_in_the_lengths(world: World) -> None:
    world.hold("r", 0, "old")
    world.hold("r", 1, "1b")
    world.seed(pending=["new"])

    assert world.claim("r")[2:5] == [2, 1, 0]

    assert world.dump()["processing:r:0"] == ["new", "old"]


def test_a_run_that_holds_a_suspect_gets_nothing_else(world: World) -> None:
    world.hold("r", 2, "2s")
    world.seed(pending=["a"], recovered=["1b"], scheduled={"0c": 1000})
    before = world.dump()

    assert world.claim("r") == reply(world, "busy", [0, 0, 1])

    assert world.dump() == before


def test_wanting_nothing_takes_nothing(world: World) -> None:
    world.seed(pending=["a"], scheduled={"0b": 1000})
    before, expected = world.dump(), reply(world, "ok", [0, 0, 0])

    assert world.claim("r", 0) == expected

    assert world.dump() == before


def test_bytes_bound_a_claim_but_never_to_nothing(world: World) -> None:
    world.seed(pending=["d" * 60, "c" * 60, "b" * 60, "a" * 500])

    assert world.claim("r", 10, max_bytes=100)[8:] == ["a" * 500]
    assert world.claim("r", 10, max_bytes=100)[8:] == ["b" * 60, "c" * 60]


def test_any_bytes_are_claimed_as_they_are(world: World) -> None:
    raw = "".join(chr(byte) for byte in range(256))
    world.seed(pending=[raw, "\x00", "\r\n"])

    assert world.claim("r")[8:] == ["\r\n", "\x00", raw]


# a run that may not claim


@pytest.mark.parametrize("score", [-5000, 1, None], ids=["being reaped", "expired", "gone"])
def test_without_a_live_lease_nothing_is_claimed(world: World, score: int | None) -> None:
    world.seed(pending=["b", "a"], recovered=["1r"], scheduled={"0s": 1000})
    world.admin.delete("taskbatch:{q}:runs")
    if score is not None:
        world.seed(runs={"r": score})
    world.hold("r", 0, "mine")
    before = world.dump()

    assert world.claim("r") == reply(world, "lost", [1, 0, 0])

    assert world.dump() == before


def test_a_paused_queue_gives_nothing(world: World) -> None:
    world.seed(pending=["a"], scheduled={"0s": 1000}, paused="deploy")
    before = world.dump()

    assert world.claim("r") == reply(world, "paused", [0, 0, 0])

    assert world.dump() == before


# what is due


def test_due_tasks_are_next_and_in_due_order(world: World) -> None:
    world.seed(pending=["p2", "p1"], scheduled={"0late": 2000, "0early": 1000})
    expected = reply(world, "ok", [3, 0, 0])

    assert world.claim("r", 3) == [*expected, "early", "late", "p1"]

    assert world.dump()["pending"] == ["p2"]
    assert "scheduled" not in world.dump()


def test_due_tasks_go_to_the_list_their_crash_digit_names(world: World) -> None:
    world.seed(scheduled={"0p": 1000, "1r": 2000, "2s": 3000, "3t": 4000})
    before, expected = world.dump(), reply(world, "ok", [1, 1, 0], recovered=1)

    assert world.claim("r") == [*expected, "1r", "p"]

    after = {
        "processing:r:0": ["p"],
        "processing:r:1": ["1r"],
        "suspects": ["3t", "2s"],
        "totals": {"claimed": "2"},
    }
    assert world.dump() == same_except(before | after, scheduled=None)


def test_what_is_not_due_waits_and_says_until_when(world: World) -> None:
    due = world.now + 60_000
    world.seed(scheduled={"0later": due, "0even later": due + 1})
    before = world.dump()

    assert world.claim("r") == reply(world, "ok", [0, 0, 0], at=due)

    assert world.dump() == before


def test_only_what_is_taken_now_is_promoted(world: World) -> None:
    world.seed(recovered=["1y", "1x"], scheduled={"0a": 1000, "0b": 2000, "0c": 3000, "0d": 4000})

    claimed = [world.claim("r", 2)[8:] for _ in range(3)]

    assert claimed == [["1x", "1y"], ["a", "b"], ["c", "d"]]


# the queue-wide limit


def test_a_limited_queue_gives_what_its_window_has_left(world: World) -> None:
    period = 3_600_000 * 24 * 365 * 100  # one window from 1970 to 2070
    world.seed(pending=["d", "c", "b", "a"], config={"limit": f"3 {period}"}, limit={"w": 0, "n": 1})
    before, now = world.dump(), world.now

    assert world.claim("r") == ["ok", Near(now), 2, 0, 0, 0, 0, 0, "a", "b"]

    after = {"pending": ["d", "c"], "processing:r:0": ["b", "a"], "totals": {"claimed": "2"}}
    expected = same_except(before | after, limit=None) | {"limit +ttl": {"w": "0", "n": "3"}}
    assert world.dump() == expected
    assert world.claim("r") == ["limited", Near(now), 2, 0, 0, 0, period, 0]
    assert world.dump() == expected


def test_a_limited_queue_is_not_churned(world: World) -> None:
    period = 3_600_000 * 24 * 365 * 100
    world.seed(pending=["a"], scheduled={"0s": 1000}, config={"limit": f"1 {period}"}, limit={"w": 0, "n": 1})
    before = world.dump()

    assert world.claim("r")[0] == "limited"

    assert world.dump() == before


def test_an_empty_limited_queue_takes_no_permit(world: World) -> None:
    world.seed(config={"limit": "3 1000"})
    before = world.dump()

    assert world.claim("r")[0] == "ok"

    assert world.dump() == before


def test_a_new_window_has_all_its_permits(world: World) -> None:
    world.seed(pending=["b", "a"], config={"limit": "1 1000"}, limit={"w": 5, "n": 1})

    assert world.claim("r")[8:] == ["a"]

    assert world.dump()["limit +ttl"] == {"w": Near(world.now // 1000 - 3, 3), "n": "1"}


def test_a_clock_that_went_back_opens_no_window_again(world: World) -> None:
    window = world.now // 1000 + 100
    world.seed(pending=["b", "a"], config={"limit": "1 1000"}, limit={"w": window, "n": 1})
    before = world.dump()

    assert world.claim("r")[:1] + world.claim("r")[5:7] == ["limited", window, (window + 1) * 1000]

    assert world.dump() == before


def test_a_limit_that_cannot_be_read_lets_nothing_through(world: World) -> None:
    world.seed(pending=["a"], config={"limit": "many"})
    before = world.dump()

    assert world.claim("r")[0] == "limited"

    assert world.dump() == before


def test_no_window_gives_more_than_its_permits_to_all_runs_together(world: World) -> None:
    world.lease("other")
    world.seed(pending=[f"{n:03}" for n in range(300)], config={"limit": "5 50"})
    windows: dict[int, int] = {}

    for n in range(300):
        answer = world.claim(("r", "other")[n % 2], 1 + n % 3)
        if answer[0] == "ok":
            windows[answer[5]] = windows.get(answer[5], 0) + len(answer[8:])

    assert set(windows.values()) <= {1, 2, 3, 4, 5}
    assert max(windows.values()) == 5


# nothing half done


@pytest.mark.parametrize(
    "name", ["runs", "config", "limit", "scheduled", "pending", "recovered", "suspects", *own("r")]
)
def test_a_key_of_another_type_fails_the_claim_and_nothing_changes(world: World, name: str) -> None:
    world.seed(pending=["a"], recovered=["1b"], scheduled={"0p": 1, "1r": 1, "2s": 1}, config={"limit": "9 1000"})
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        world.claim("r")

    assert world.dump() == before


def test_totals_of_another_type_cost_the_count_and_no_task(world: World) -> None:
    world.seed(pending=["b", "a"])
    world.break_type("totals")
    before = world.dump()

    assert world.claim("r", 1)[8:] == ["a"]

    assert world.dump() == same_except(before, pending=["b"], processing__r__0=["a"])
