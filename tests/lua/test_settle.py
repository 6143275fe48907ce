"""settle: an outcome takes its task from the run's own list and puts it where it belongs."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import Near, same_except
from tests.lua.world import World, outcome, own


@pytest.fixture(autouse=True)
def run_with_a_lease(world: World) -> None:
    world.lease("r")


def test_an_ack_removes_the_task_and_nothing_else(world: World) -> None:
    world.hold("r", 0, "b", "a")
    world.seed(pending=["p"], recovered=["1a"], suspects=["2a"])
    before, now = world.dump(), world.now

    assert world.settle("r", outcome(0, "a", "ack")) == [Near(now), 1, 0, 0, "1"]

    assert world.dump() == same_except(before, processing__r__0=["b"])


@pytest.mark.parametrize(("n", "entry"), [(0, "a"), (1, "1a"), (2, "3a")])
def test_an_ack_takes_from_the_list_it_names(world: World, n: int, entry: str) -> None:
    for list_n in range(3):
        world.hold("r", list_n, entry)
    before, lengths = world.dump(), [1, 1, 1]
    lengths[n] = 0

    assert world.settle("r", outcome(n, entry, "ack"))[1:] == [*lengths, "1"]

    assert world.dump() == same_except(before, **{f"processing__r__{n}": None})


def test_a_retry_goes_into_scheduled_as_it_was_changed(world: World) -> None:
    world.hold("r", 2, "3a")
    before, now = world.dump(), world.now

    world.settle("r", outcome(2, "3a", "schedule", stored="0a'", detail=60_000))

    assert world.dump() == same_except(before, processing__r__2=None, scheduled={"0a'": Near(now + 60_000)})


@pytest.mark.parametrize(("n", "entry", "origin"), [(0, "a", "pending"), (1, "1a", "recovered"), (2, "3a", "suspects")])
def test_what_is_returned_is_next_where_it_came_from(world: World, n: int, entry: str, origin: str) -> None:
    world.hold("r", n, entry)
    world.seed(pending=["x"], recovered=["1x"], suspects=["2x"])
    before = world.dump()

    world.settle("r", outcome(n, entry, "return"))

    changed = {origin: [*before[origin], entry], f"processing:r:{n}": None}
    assert world.dump() == same_except(before, **changed)


def test_what_is_returned_can_be_changed(world: World) -> None:
    world.hold("r", 1, "1a")
    before = world.dump()

    world.settle("r", outcome(1, "1a", "return", stored="1a'"))

    assert world.dump() == same_except(before, processing__r__1=None, recovered=["1a'"])


def test_tasks_returned_newest_first_wait_as_they_did_before(world: World) -> None:
    world.seed(pending=["d", "c", "b", "a"])
    claimed = world.claim("r", 3)[8:]
    assert claimed == ["a", "b", "c"]

    world.settle("r", *(outcome(0, entry, "return") for entry in reversed(claimed)))

    assert world.dump()["pending"] == ["d", "c", "b", "a"]


@pytest.mark.parametrize(("n", "entry"), [(0, "1a"), (1, "11a"), (2, "31a")])
def test_a_dead_letter_keeps_the_tasks_own_bytes(world: World, n: int, entry: str) -> None:
    world.hold("r", n, entry)
    before, now = world.dump(), world.now

    world.settle("r", outcome(n, entry, "dead", detail="failed", error="no such user"))

    letter = {"task": "1a", "reason": "failed", "error": "no such user", "run": "r", "at": Near(now)}
    assert world.dump() == same_except(before, dead=[letter], **{f"processing__r__{n}": None})


def test_a_dead_letter_can_be_changed(world: World) -> None:
    world.hold("r", 1, "1a")

    world.settle("r", outcome(1, "1a", "dead", stored="a'", detail="failed"))

    assert world.dump()["dead"][0]["task"] == "a'"


def test_a_strangers_entry_without_a_digit_dies_whole(world: World) -> None:
    world.hold("r", 2, "\n\x01a")

    world.settle("r", outcome(2, "\n\x01a", "dead", detail="undecodable"))

    assert world.dump()["dead"][0]["task"] == "\n\x01a"


def test_a_batch_is_settled_in_one_go(world: World) -> None:
    world.hold("r", 0, "d", "c", "b", "a")
    before, now = world.dump(), world.now

    answer = world.settle(
        "r",
        outcome(0, "a", "ack"),
        outcome(0, "gone", "ack"),
        outcome(0, "b", "schedule", stored="0b'", detail=1),
        outcome(0, "c", "return"),
        outcome(0, "d", "dead", detail="failed"),
    )

    assert answer == [Near(now), 0, 0, 0, "10111"]
    letter = {"task": "d", "reason": "failed", "error": "", "run": "r", "at": Near(now)}
    after = same_except(before, processing__r__0=None, scheduled={"0b'": Near(now)}, pending=["c"], dead=[letter])
    assert world.dump() == after


# not ours (any more): nothing changes

SETTLED = [
    outcome(0, "a", "ack", tally="t tasks:succeeded:t", duration=5, latency=5, window="3", unique="11 id"),
    outcome(0, "a", "schedule", stored="0a'", detail=1, tally="t tasks:retried:t", duration=5),
    outcome(0, "a", "return", tally="t tasks:released:t", window="3"),
    outcome(0, "a", "dead", detail="failed", tally="t tasks:dead:t", duration=5),
]


@pytest.mark.parametrize("late", SETTLED, ids=["ack", "schedule", "return", "dead"])
def test_a_late_settle_of_what_was_reaped_changes_nothing(world: World, late: list[object]) -> None:
    world.seed(recovered=["1a"], pending=["a"], unique__k="id", limit={"w": 3, "n": 1}, totals={"claimed": "1"})
    world.hold("other", 0, "a")
    before, now = world.dump(), world.now

    assert world.settle("r", late, unique=["unique:k"]) == [Near(now), 0, 0, 0, "0"]

    assert world.dump() == before


@pytest.mark.parametrize("outcome_", SETTLED, ids=["ack", "schedule", "return", "dead"])
def test_a_repeat_changes_nothing(world: World, outcome_: list[object]) -> None:
    world.hold("r", 0, "b", "a")
    world.seed(unique__k="id", limit={"w": 3, "n": 1})
    assert world.settle("r", outcome_, unique=["unique:k"])[4] == "1"
    before = world.dump()

    assert world.settle("r", outcome_, unique=["unique:k"])[4] == "0"

    assert world.dump() == before


def test_identical_tasks_are_settled_one_at_a_time(world: World) -> None:
    world.hold("r", 0, "same", "same", "same")

    assert world.settle("r", outcome(0, "same", "ack"))[1] == 2
    assert world.settle("r", outcome(0, "same", "ack"), outcome(0, "same", "return"))[1:] == [0, 0, 0, "11"]

    assert world.dump()["pending"] == ["same"]


def test_a_run_whose_lease_expired_still_settles_what_it_holds(world: World) -> None:
    world.lease("r", -5000)
    world.hold("r", 0, "a")
    before = world.dump()

    assert world.settle("r", outcome(0, "a", "ack"))[4] == "1"

    assert world.dump() == same_except(before, processing__r__0=None)


# what is counted, and what is not


def test_totals_count_what_was_really_settled(world: World) -> None:
    world.hold("r", 0, "b", "a")
    words = "t duration:0.5:t latency:1 tasks:succeeded:t"

    world.settle(
        "r",
        outcome(0, "a", "ack", tally=words, duration=400_000, latency=900),
        outcome(0, "b", "ack", tally=words, duration=300_000, latency=800),
        outcome(0, "gone", "ack", tally=words, duration=1, latency=1),
    )

    assert world.dump()["totals"] == {
        "duration:0.5:t": "2",
        "latency:1": "2",
        "tasks:succeeded:t": "2",
        "duration_sum_us:t": "700000",
        "latency_sum_ms": "1700",
    }


def test_sums_stay_whole_numbers_when_they_are_large(world: World) -> None:
    world.hold("r", 0, "a")
    world.seed(totals={"duration_sum_us:t": "9000000000000000"})

    world.settle("r", outcome(0, "a", "ack", duration=123_456_789_012_345, latency=123_456_789_012))

    totals = world.dump()["totals"]
    assert totals == {"duration_sum_us:t": "9123456789012345", "latency_sum_ms": "123456789012"}


def test_a_permit_is_refunded_in_its_own_window_only(world: World) -> None:
    world.hold("r", 0, "c", "b", "a")
    world.seed(limit={"w": 7, "n": 5})
    before = world.dump()

    world.settle(
        "r",
        outcome(0, "a", "return", window="7"),
        outcome(0, "b", "return", window="6"),
        outcome(0, "c", "return", window="7"),
        outcome(0, "gone", "return", window="7"),
    )

    assert world.dump() == same_except(
        before, processing__r__0=None, pending=["a", "b", "c"], limit={"w": "7", "n": "3"}
    )


def test_no_more_permits_are_refunded_than_were_taken(world: World) -> None:
    world.hold("r", 0, "b", "a")
    world.seed(limit={"w": 7, "n": 1})

    world.settle("r", outcome(0, "a", "return", window="7"), outcome(0, "b", "return", window="7"))

    assert world.dump()["limit"] == {"w": "7", "n": "0"}


def test_an_ack_frees_the_deduplication_key_it_holds(world: World) -> None:
    world.hold("r", 0, "b", "a")
    world.seed(unique__k="id-a", unique__other="id-b's successor")
    before = world.dump()

    world.settle(
        "r",
        outcome(0, "a", "ack", unique="11 id-a"),
        outcome(0, "b", "ack", unique="12 id-b"),
        unique=["unique:k", "unique:other"],
    )

    assert world.dump() == same_except(before, processing__r__0=None, unique__k=None)


# nothing half done


@pytest.mark.parametrize("verb", ["ack", "schedule", "return", "dead"])
@pytest.mark.parametrize("name", ["scheduled", "pending", "recovered", "suspects", "dead", *own("r")])
def test_a_key_of_another_type_fails_the_batch_and_nothing_changes(world: World, verb: str, name: str) -> None:
    for n in range(3):
        world.hold("r", n, "1a")
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        world.settle("r", *(outcome(n, "1a", verb, stored="0a", detail=1) for n in range(3)))

    assert world.dump() == before


@pytest.mark.parametrize("name", ["totals", "limit", "unique:k"])
def test_keys_beside_the_tasks_of_another_type_cost_no_task(world: World, name: str) -> None:
    world.hold("r", 0, "b", "a")
    world.break_type(name)
    before = world.dump()
    counted = {"tally": "t tasks:succeeded:t", "duration": 1, "latency": 1, "window": "7"}

    answer = world.settle(
        "r",
        outcome(0, "a", "ack", unique="11 id", **counted),  # type: ignore[arg-type]
        outcome(0, "b", "return", **counted),  # type: ignore[arg-type]
        unique=["unique:k"],
    )

    assert answer[4] == "11"
    after = {key: value for key, value in world.dump().items() if key != "totals" or name == "totals"}
    assert after == same_except(before, processing__r__0=None, pending=["b"])


@pytest.mark.parametrize(
    "nonsense",
    [
        outcome(0, "b", "forget"),
        outcome(3, "b", "ack"),
        outcome(0, "b", "schedule", stored="0b", detail="soon"),
        outcome(0, "b", "schedule", detail=1),
        outcome(0, "b", "ack", duration="long"),
        outcome(0, "b", "ack", latency="long"),
        outcome(0, "b", "ack")[:-1],
    ],
    ids=["unknown verb", "no such list", "no delay", "nothing to store", "duration", "latency", "too short"],
)
def test_an_outcome_that_makes_no_sense_fails_the_batch_and_nothing_changes(
    world: World, nonsense: list[object]
) -> None:
    world.hold("r", 0, "b", "a")
    before = world.dump()

    with pytest.raises(ResponseError, match="settle"):
        world.settle("r", outcome(0, "a", "ack"), nonsense)

    assert world.dump() == before
