"""The publisher's lock: push_lock and push_unlock, on every kind of server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

if TYPE_CHECKING:
    from tests.conftest import StartServer
    from tests.servers import Server

LUA = Path(__file__).parents[2] / "lua"
LOCK = "taskbatch:{q}:totals:push"
OTHER = "taskbatch:{q}:totals"


def call(client: redis.Redis, name: str, *args: str | int) -> str:
    source = (LUA / f"{name}.lua").read_text()
    return bytes(client.eval(source, 1, LOCK, *args)).decode()


def everything(client: redis.Redis) -> dict[bytes, bytes]:
    return {key: client.get(key) for key in client.keys("*")}


@pytest.fixture
def client(server: Server) -> redis.Redis:
    return server.client()


def test_a_free_lock_is_taken_for_a_time(client: redis.Redis) -> None:
    assert call(client, "push_lock", "me", 5000) == "taken"

    assert everything(client) == {LOCK.encode(): b"me"}
    assert 4000 < client.pttl(LOCK) <= 5000


def test_the_holder_keeps_it_and_its_time_starts_anew(client: redis.Redis) -> None:
    client.set(LOCK, "me", px=1000)

    assert call(client, "push_lock", "me", 5000) == "kept"

    assert everything(client) == {LOCK.encode(): b"me"}
    assert 4000 < client.pttl(LOCK) <= 5000


def test_the_holder_keeps_the_dirty_flag(client: redis.Redis) -> None:
    client.set(LOCK, "me!", px=1000)

    assert call(client, "push_lock", "me", 5000) == "kept"

    assert everything(client) == {LOCK.encode(): b"me!"}
    assert 4000 < client.pttl(LOCK) <= 5000


@pytest.mark.parametrize("held", ["me", "me!"])
def test_another_sets_the_dirty_flag_and_gains_no_time_for_the_holder(client: redis.Redis, held: str) -> None:
    client.set(LOCK, held, px=1000)

    assert call(client, "push_lock", "you", 5000) == "busy"

    assert everything(client) == {LOCK.encode(): b"me!"}
    assert 0 < client.pttl(LOCK) <= 1000


def test_a_token_that_begins_alike_is_another(client: redis.Redis) -> None:
    client.set(LOCK, "me2", px=1000)

    assert call(client, "push_lock", "me", 5000) == "busy"
    assert call(client, "push_unlock", "me", 0) == "lost"

    assert everything(client) == {LOCK.encode(): b"me2!"}


def test_a_lock_that_nobody_gives_back_ends(client: redis.Redis) -> None:
    call(client, "push_lock", "me", 50)
    time.sleep(0.1)

    assert call(client, "push_lock", "you", 5000) == "taken"

    assert everything(client) == {LOCK.encode(): b"you"}


def test_a_clean_lock_is_left(client: redis.Redis) -> None:
    client.set(LOCK, "me", px=1000)
    client.set(OTHER, "stays")

    assert call(client, "push_unlock", "me", 5000) == "done"

    assert everything(client) == {OTHER.encode(): b"stays"}


def test_a_dirty_lock_is_cleaned_and_stays_ours(client: redis.Redis) -> None:
    client.set(LOCK, "me!", px=1000)

    assert call(client, "push_unlock", "me", 5000) == "again"

    assert everything(client) == {LOCK.encode(): b"me"}
    assert 4000 < client.pttl(LOCK) <= 5000


@pytest.mark.parametrize("held", ["me", "me!"])
def test_giving_up_leaves_it_in_any_case(client: redis.Redis, held: str) -> None:
    client.set(LOCK, held, px=1000)

    assert call(client, "push_unlock", "me", 0) == "done"

    assert everything(client) == {}


@pytest.mark.parametrize("held", ["you", "you!"])
@pytest.mark.parametrize("ttl", [0, 5000])
def test_not_the_holder_changes_nothing(client: redis.Redis, held: str, ttl: int) -> None:
    client.set(LOCK, held, px=1000)

    assert call(client, "push_unlock", "me", ttl) == "lost"

    assert everything(client) == {LOCK.encode(): held.encode()}
    assert 0 < client.pttl(LOCK) <= 1000


def test_a_lock_that_is_gone_stays_gone(client: redis.Redis) -> None:
    assert call(client, "push_unlock", "me", 5000) == "lost"

    assert everything(client) == {}


@pytest.mark.parametrize("name", ["push_lock", "push_unlock"])
def test_a_key_of_another_type_is_not_touched(client: redis.Redis, name: str) -> None:
    client.rpush(LOCK, "a", "b")

    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        call(client, name, "me", 5000)

    assert client.lrange(LOCK, 0, -1) == [b"a", b"b"]


def test_a_full_server_still_lends_it(own_server: StartServer) -> None:
    client = own_server().client()
    client.config_set("maxmemory", 1)

    assert call(client, "push_lock", "me", 5000) == "taken"
    assert call(client, "push_lock", "you", 5000) == "busy"
    assert call(client, "push_unlock", "me", 5000) == "again"
    assert call(client, "push_unlock", "me", 5000) == "done"
