"""Waiting for new work, on real servers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch.connect import Link
from taskbatch.door import Door
from taskbatch.errors import ConfigError, DoubtError
from taskbatch.settings import RedisSettings
from tests.batches import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Server

A, B = "taskbatch:{a}:pending", "taskbatch:{b}:pending"


class Rests(list[float]):
    """Remembers for how long the door rested without Redis."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    made = Link(RedisSettings(url=server.url))
    yield made
    made.close()


def blocked(server: Server) -> int:
    return int(server.client().info("clients")["blocked_clients"])


def test_it_opens_at_once_for_new_work(server: Server, link: Link) -> None:
    rests, ended = Rests(), threading.Event()

    def wait() -> None:
        Door(link, rests).wait([A], 60.0)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: blocked(server) == 1, "the wait")
    began = time.monotonic()
    server.client().lpush(A, b"task")

    assert ended.wait(5)
    thread.join()
    assert time.monotonic() - began < 0.5
    assert server.client().lrange(A, 0, -1) == [b"task"]  # it still is where it was
    assert rests == []


def test_one_slice_is_a_second_at_most(server: Server, link: Link) -> None:
    began = time.monotonic()

    Door(link, Rests()).wait([A], 60.0)

    assert 0.9 < time.monotonic() - began < 2.0


def test_a_wait_is_never_rounded_to_for_ever(server: Server, link: Link) -> None:
    rests = Rests()
    door = Door(link, rests)

    for seconds in (0.0, 0.0001, 0.004, 0.0099):
        door.wait([A], seconds)
    began = time.monotonic()
    door.wait([A], 0.01)

    assert rests == [0.0, 0.0001, 0.004, 0.0099]
    assert time.monotonic() - began < 1.0


def test_lists_share_a_slice(server: Server, link: Link) -> None:
    server.client().config_resetstat()
    began = time.monotonic()

    Door(link, Rests()).wait([A, B], 0.4)

    assert 0.3 < time.monotonic() - began < 1.0
    assert server.client().info("commandstats")["cmdstat_blmove"]["calls"] == 2


def test_each_list_comes_first_in_turn(server: Server, link: Link) -> None:
    """Or a busy first list would keep the others waiting."""
    server.client().lpush(A, b"task")
    server.client().lpush(B, b"task")
    server.client().config_resetstat()
    door = Door(link, Rests())

    door.wait([A, B], 1.0)
    server.client().delete(A)
    began = time.monotonic()
    door.wait([A, B], 1.0)

    assert time.monotonic() - began < 0.3


def test_nothing_to_wait_at_is_a_rest(link: Link) -> None:
    rests = Rests()

    Door(link, rests).wait([], 0.7)

    assert rests == [0.7]


def test_a_full_server_is_polled(server: Server, link: Link) -> None:
    client, rests = server.client(), Rests()
    client.lpush(A, b"task")
    client.config_set("maxmemory", "1")
    try:
        Door(link, rests).wait([A], 0.2)
    finally:
        client.config_set("maxmemory", "0")

    assert rests == [0.2]


def test_a_wait_that_is_unblocked_with_an_error_is_a_rest(server: Server, link: Link) -> None:
    client, rests = server.client(), Rests()
    number = link.call("CLIENT", "ID")
    thread = threading.Thread(target=Door(link, rests).wait, args=([A], 1.0))
    thread.start()
    eventually(lambda: blocked(server) == 1, "the wait")

    client.execute_command("CLIENT", "UNBLOCK", number, "ERROR")

    thread.join(5)
    assert rests == [1.0]


def test_a_key_of_a_wrong_type_is_named(server: Server, link: Link) -> None:
    server.client().set(A, "text")

    with pytest.raises(ConfigError, match="WRONGTYPE"):
        Door(link, Rests()).wait([A], 0.1)


def test_a_connection_that_ends_is_doubt(server: Server, link: Link) -> None:
    client = server.client()
    number = link.call("CLIENT", "ID")
    problems: list[Exception] = []

    def wait() -> None:
        try:
            Door(link, Rests()).wait([A], 1.0)
        except DoubtError as error:
            problems.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: blocked(server) == 1, "the wait")
    client.client_kill_filter(_id=str(number))

    thread.join(5)
    assert len(problems) == 1
