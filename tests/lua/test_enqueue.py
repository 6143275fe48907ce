"""enqueue: one task is accepted, now or later, once while its deduplication key is held."""

from __future__ import annotations

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from tests.lua.keyspace import Near, full, same_except
from tests.lua.world import LEASE, World, full_server, sleep_ms


def test_a_task_for_now_waits_behind_the_others(world: World) -> None:
    world.seed(pending=["b", "a"], scheduled={"0s": 1})
    before = world.dump()

    assert world.enqueue("c") == [1, "id1"]

    assert world.dump() == same_except(before, pending=["c", "b", "a"])


def test_a_task_for_later_is_scheduled_by_the_servers_clock(world: World) -> None:
    now = world.now

    assert world.enqueue("c", delay=60_000) == [1, "id1"]

    assert world.dump() == {"scheduled": {"0c": Near(now + 60_000)}}


def test_a_deduplication_key_is_held_by_the_task(world: World) -> None:
    assert world.enqueue("c", unique="k") == [1, "id1"]

    assert world.dump() == {"pending": ["c"], "unique:k +ttl": "id1"}
    assert 0 < world.admin.pttl(full("unique:k")) <= LEASE


@pytest.mark.parametrize("delay", [0, 60_000])
def test_while_it_is_held_nothing_is_enqueued(world: World, delay: int) -> None:
    world.enqueue("c", unique="k", ttl=30_000)
    before = world.dump()

    assert world.enqueue("d", "id2", unique="k", delay=delay) == [0, "id1"]

    assert world.dump() == before
    assert world.admin.pttl(full("unique:k")) <= 30_000


def test_a_delayed_task_holds_its_key_too(world: World) -> None:
    now = world.now

    assert world.enqueue("c", unique="k", delay=60_000) == [1, "id1"]

    assert world.dump() == {"scheduled": {"0c": Near(now + 60_000)}, "unique:k +ttl": "id1"}


def test_a_twin_of_a_scheduled_task_is_not_taken_for_a_second_one(world: World) -> None:
    world.enqueue("c", delay=60_000)
    before = world.dump()

    assert world.enqueue("c", unique="k", delay=90_000) == [0, "id1"]

    assert world.dump() == before


def test_another_key_and_another_task_are_free(world: World) -> None:
    world.enqueue("c", unique="k")

    assert world.enqueue("d", "id2", unique="other") == [1, "id2"]
    assert world.enqueue("e", "id3") == [1, "id3"]

    assert world.dump()["pending"] == ["e", "d", "c"]


def test_a_key_that_ran_out_is_free(world: World) -> None:
    world.enqueue("c", unique="k", ttl=20)
    sleep_ms(40)

    assert world.enqueue("d", "id2", unique="k") == [1, "id2"]


def test_any_bytes_are_accepted_as_they_are(world: World) -> None:
    raw = "".join(chr(byte) for byte in range(256))

    world.enqueue(raw)
    world.enqueue(raw, delay=1)

    assert world.dump() == {"pending": [raw], "scheduled": {"0" + raw: Near(world.now - 3000, 6000)}}


@pytest.mark.parametrize("name", ["pending", "scheduled", "unique:k"])
@pytest.mark.parametrize("delay", [0, 60_000])
def test_a_key_of_another_type_refuses_it_and_nothing_changes(world: World, name: str, delay: int) -> None:
    world.break_type(name)
    before = world.dump()

    with pytest.raises(ResponseError, match=f"WRONGTYPE taskbatch:{{q}}:{name}"):
        world.enqueue("c", unique="k", delay=delay)

    assert world.dump() == before


@pytest.mark.parametrize(("delay", "ttl"), [("soon", LEASE), (0, 0), (0, "long"), (0, -1)])
def test_arguments_that_make_no_sense_refuse_it_and_nothing_changes(world: World, delay: int, ttl: int) -> None:
    with pytest.raises(ResponseError):
        world.enqueue("c", unique="k", delay=delay, ttl=ttl)

    assert world.dump() == {}


@pytest.mark.parametrize("delay", [0, 60_000])
def test_a_full_server_refuses_it_and_nothing_changes(world: World, delay: int) -> None:
    world.seed(pending=["a"])
    before = world.dump()
    with full_server(world), pytest.raises(OutOfMemoryError):
        world.enqueue("c", unique="k", delay=delay)

    assert world.dump() == before
