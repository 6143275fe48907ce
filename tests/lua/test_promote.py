"""promote: what is due goes to the list its crash digit names, what waited longest in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis.exceptions import ResponseError

from tests.lua.keyspace import full, same_except

if TYPE_CHECKING:
    from tests.lua.world import World


def test_due_tasks_go_where_their_digits_say_in_due_order(world: World) -> None:
    world.seed(
        scheduled={"0a": 1000, "0b": 2000, "1c": 3000, "1d": 4000, "2e": 5000, "3f": 6000},
        pending=["p"],
        recovered=["1r"],
        suspects=["2s"],
    )

    assert world.promote() == 6

    assert world.dump() == {
        "pending": ["p", "b", "a"],
        "recovered": ["1r", "1d", "1c"],
        "suspects": ["2s", "3f", "2e"],
    }


def test_what_is_not_due_stays(world: World) -> None:
    due = world.now + 60_000
    world.seed(scheduled={"0a": due})
    before = world.dump()

    assert world.promote() == 0

    assert world.dump() == before


def test_nothing_scheduled_changes_nothing(world: World) -> None:
    assert world.promote() == 0

    assert world.dump() == {}


def test_chunk_by_chunk_the_longest_waiting_ends_up_in_front(world: World) -> None:
    later = world.now + 60_000
    world.seed(scheduled={**{f"0{n:02}": n + 1 for n in range(25)}, "0later": later}, pending=["p"])

    answers = [world.promote(10) for _ in range(4)]

    assert answers == [10, 10, 5, 0]
    assert world.dump() == {"pending": ["p", *(f"{n:02}" for n in reversed(range(25)))], "scheduled": {"0later": later}}


def test_bytes_bound_a_chunk_but_never_to_nothing(world: World) -> None:
    world.seed(scheduled={"0" + "a" * 500: 1, "0" + "b" * 60: 2, "0" + "c" * 60: 3})

    answers = [world.promote(max_bytes=100) for _ in range(3)]

    assert answers == [2, 1, 0]


def test_large_tasks_behind_small_ones_do_not_make_a_large_chunk(world: World) -> None:
    mebibyte = "x" * 1024 * 1024
    small = {f"0small{n}": 1000 + n for n in range(20)}
    world.seed(scheduled={**small, **{f"0{n:02}{mebibyte}": n + 1 for n in range(30)}})

    assert world.promote() <= 20 + 8


def test_a_thousand_tasks_in_one_call(world: World) -> None:
    world.seed(scheduled={f"0{n:04}": n + 1 for n in range(1500)})

    assert world.promote() == 1000

    assert (world.admin.llen(full("pending")), world.admin.zcard(full("scheduled"))) == (1000, 500)


def test_any_bytes_arrive_as_they_are(world: World) -> None:
    raw = "".join(chr(byte) for byte in range(256))
    world.seed(scheduled={"0" + raw: 1, "1" + raw: 1, "\n\x00stranger": 1})

    world.promote()

    assert world.dump() == {"pending": [raw], "recovered": ["1" + raw], "suspects": ["\n\x00stranger"]}


@pytest.mark.parametrize("name", ["scheduled", "pending", "recovered", "suspects"])
def test_a_key_of_another_type_fails_the_chunk_and_nothing_changes(world: World, name: str) -> None:
    world.seed(scheduled={"0a": 1, "1b": 1, "2c": 1})
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match=f"WRONGTYPE taskbatch:{{q}}:{name}"):
        world.promote()

    assert world.dump() == same_except(before)
