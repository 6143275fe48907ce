"""The producer on real servers: what is on the queue after each call, and after each trouble."""

from __future__ import annotations

import os
import socket
import threading
import time
import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from taskbatch import Client
from taskbatch.client import Enqueued, EnqueueError, Item
from taskbatch.errors import (
    ConfigError,
    DoubtError,
    PayloadTooLargeError,
    RefusedError,
    UnreachableError,
)
from taskbatch.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

    from tests.conftest import StartServer
    from tests.servers import Server

PENDING = "taskbatch:{default}:pending"
SCHEDULED = "taskbatch:{default}:scheduled"


@pytest.fixture
def admin(server: Server) -> redis.Redis:
    return server.client()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def tasks(admin: redis.Redis, key: str = PENDING) -> list[Task]:
    """Return what is pending, next first."""
    return [Task.FromString(raw) for raw in reversed(admin.lrange(key, 0, -1))]


def commands(admin: redis.Redis) -> Counter[str]:
    """Return how often each command was called since the statistics were reset."""
    return Counter({name[8:]: stat["calls"] for name, stat in admin.info("commandstats").items()})


def test_a_task_is_pending(client: Client, admin: redis.Redis) -> None:
    before = time.time() * 1000

    enqueued = client.enqueue("email.send", {"to": "a@b.c"})

    (task,) = tasks(admin)
    assert (task.id, task.type, task.payload) == (enqueued.id, "email.send", b'{"to":"a@b.c"}')
    assert before - 1 <= task.enqueued_at_ms <= time.time() * 1000
    assert enqueued == Enqueued(task.id, duplicate=False)
    assert {key.decode() for key in admin.keys("*")} == {PENDING, "taskbatch:queues"}
    assert admin.smembers("taskbatch:queues") == {b"default"}


def test_what_is_enqueued_first_is_next(client: Client, admin: redis.Redis) -> None:
    ids = [client.enqueue("t").id for _ in range(3)]

    assert [task.id for task in tasks(admin)] == ids


def test_one_round_trip_and_one_command_a_task(client: Client, admin: redis.Redis) -> None:
    client.enqueue("t")
    admin.config_resetstat()

    client.enqueue("t")

    assert commands(admin) == {"lpush": 1, "config|resetstat": 1}


def test_queue_and_prefix_name_the_keys(server: Server, admin: redis.Redis) -> None:
    Client(server.url, prefix="app").enqueue("t", queue="mail")

    assert {key.decode() for key in admin.keys("*")} == {"app:{mail}:pending", "app:queues"}


def test_a_delayed_task_is_scheduled_by_the_servers_clock(client: Client, admin: redis.Redis) -> None:
    now = server_ms(admin)

    enqueued = client.enqueue("t", delay=60)

    ((entry, due),) = admin.zrange(SCHEDULED, 0, -1, withscores=True)
    assert entry[:1] == b"0"
    assert Task.FromString(entry[1:]).id == enqueued.id
    assert now + 60_000 <= due <= now + 63_000
    assert not admin.exists(PENDING)


def test_expiry_is_by_the_servers_clock_whatever_ours_says(
    client: Client, admin: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = server_ms(admin)
    monkeypatch.setattr("time.time", lambda: 1_000.0)

    client.enqueue("t", expires=60)

    (task,) = tasks(admin)
    assert now + 60_000 - 5 <= task.expires_at_ms <= now + 63_000
    assert task.enqueued_at_ms == 1_000_000


def test_a_unique_key_is_held_by_the_first(client: Client, admin: redis.Redis) -> None:
    first = client.enqueue("t", 1, unique_key="k", unique_ttl=60)
    second = client.enqueue("t", 2, unique_key="k", delay=5)

    assert second == Enqueued(first.id, duplicate=True)
    (task,) = tasks(admin)
    assert (task.id, task.unique_key, task.payload) == (first.id, "k", b"1")
    assert admin.get("taskbatch:{default}:unique:k") == first.id.encode()
    assert 0 < admin.pttl("taskbatch:{default}:unique:k") <= 60_000
    assert not admin.exists(SCHEDULED)


def test_twenty_threads_and_one_unique_key_make_one_task(server: Server, admin: redis.Redis) -> None:
    client = Client(server.url)
    results: list[Enqueued] = []
    threads = [threading.Thread(target=lambda: results.append(client.enqueue("t", unique_key="k"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({result.id for result in results}) == 1
    assert sorted(result.duplicate for result in results) == [False] + [True] * 19
    assert len(tasks(admin)) == 1


def test_threads_share_a_client(client: Client, admin: redis.Redis) -> None:
    def enqueue(n: int) -> None:
        for i in range(50):
            client.enqueue("t", [n, i])
        client.enqueue_many(([n, i] for i in range(50, 100)), "t")

    threads = [threading.Thread(target=enqueue, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    payloads = Counter(task.payload for task in tasks(admin))
    assert payloads == {f"[{n},{i}]".encode(): 1 for n in range(8) for i in range(100)}


def test_a_forked_child_has_a_connection_of_its_own(client: Client, admin: redis.Redis) -> None:
    client.enqueue("t", "before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            client.enqueue("t", "child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0

    client.enqueue("t", "after")

    assert [task.payload for task in tasks(admin)] == [b"before", b"child", b"after"]
    names = [entry for entry in admin.client_list() if entry["cmd"] != "client|list"]
    assert len(names) == 1


# many


def test_many_payloads_of_one_type_in_order(client: Client, admin: redis.Redis) -> None:
    client.enqueue("warm-up", queue="other")
    admin.config_resetstat()

    enqueued = client.enqueue_many(range(2500), "t", queue="mail", limit_key="x", max_attempts=2)

    found = tasks(admin, "taskbatch:{mail}:pending")
    assert [task.id for task in found] == [str(one) for one in enqueued]
    assert [int(task.payload) for task in found] == list(range(2500))
    assert {(task.type, task.limit_key, task.max_attempts) for task in found} == {("t", "x", 2)}
    assert commands(admin)["lpush"] == 3


def test_items_of_many_kinds_in_one_round_trip(client: Client, admin: redis.Redis) -> None:
    admin.config_resetstat()

    enqueued = client.enqueue_many(
        [
            Item("a", 1, id="1"),
            Item("b", 2, id="2", unique_key="k"),
            Item("b", 3, id="3", unique_key="k"),
            Item("c", 4, id="4", delay=60),
            Item("d", 5, id="5", queue="mail"),
            Item("e", 6, id="6"),
        ]
    )

    assert enqueued == [("1", False), ("2", False), ("2", True), ("4", False), ("5", False), ("6", False)]
    assert [task.id for task in tasks(admin)] == ["1", "2", "6"]
    assert [task.id for task in tasks(admin, "taskbatch:{mail}:pending")] == ["5"]
    assert admin.zcard(SCHEDULED) == 1
    assert admin.smembers("taskbatch:queues") == {b"default", b"mail"}


def test_scripts_that_were_forgotten_do_not_change_the_order(client: Client, admin: redis.Redis) -> None:
    client.enqueue("t", unique_key="known")
    admin.script_flush("SYNC")

    client.enqueue_many(Item("t", n, unique_key=str(n)) for n in range(50))

    assert [task.payload for task in tasks(admin)][1:] == [str(n).encode() for n in range(50)]


def test_delay_and_expiry_of_many(client: Client, admin: redis.Redis) -> None:
    now = server_ms(admin)
    admin.config_resetstat()

    client.enqueue_many(range(3), "t", delay=60, expires=120)

    found = admin.zrange(SCHEDULED, 0, -1, withscores=True)
    assert len(found) == 3
    for entry, due in found:
        assert now + 60_000 <= due <= now + 63_000
        assert now + 119_990 <= Task.FromString(entry[1:]).expires_at_ms <= now + 123_000
    # One for all of them; the script asks for itself.
    assert commands(admin)["time"] == 1 + 3


def test_chunks_are_bounded_by_bytes_too(client: Client, admin: redis.Redis) -> None:
    client.enqueue("warm-up", queue="other")
    admin.config_resetstat()

    client.enqueue_many((b"x" * 400_000 for _ in range(6)), "t")

    assert commands(admin)["lpush"] == 3


def test_a_task_larger_than_a_chunk_goes_alone(client: Client, admin: redis.Redis) -> None:
    client.enqueue_many([b"a", b"x" * 1024 * 1024, b"b"], "t")

    assert [len(task.payload) for task in tasks(admin)] == [1, 1024 * 1024, 1]


def test_nothing_to_enqueue_is_nothing(client: Client, admin: redis.Redis) -> None:
    assert client.enqueue_many([], "t") == []
    assert admin.keys() == []


def test_a_stream_takes_no_more_memory_the_longer_it_is(client: Client, admin: redis.Redis) -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in client.enqueue_stream((b"x" * 1000 for _ in range(count)), "t"):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1_000)

    assert peak(20_000) < 1.5 * peak(4_000)


def test_a_stream_sends_as_it_is_read(client: Client, admin: redis.Redis) -> None:
    stream = client.enqueue_stream(iter(int, 1), "t")  # endless

    next(stream)

    assert admin.llen(PENDING) == 1000
    stream.close()  # type: ignore[attr-defined]


# trouble


def server_ms(admin: redis.Redis) -> int:
    seconds, micros = admin.time()
    return seconds * 1000 + micros // 1000


@pytest.mark.parametrize("options", [{}, {"delay": 5}, {"unique_key": "k"}], ids=["plain", "delay", "unique"])
def test_a_full_server_refuses_and_nothing_is_there(
    client: Client, admin: redis.Redis, options: dict[str, Any]
) -> None:
    admin.config_set("maxmemory", 1)
    try:
        with pytest.raises(RefusedError, match=r"OOM|maxmemory"):
            client.enqueue("t", **options)
        with pytest.raises(RefusedError, match=r"OOM|maxmemory"):
            client.enqueue_many([Item("t", **options)])
    finally:
        admin.config_set("maxmemory", 0)

    assert admin.keys() == []


def test_a_key_of_another_type_is_named(client: Client, admin: redis.Redis) -> None:
    admin.set(PENDING, "x")

    with pytest.raises(ConfigError, match="WRONGTYPE"):
        client.enqueue("t")


def test_a_producer_that_may_only_push_can(server: Server, admin: redis.Redis) -> None:
    admin.execute_command("ACL", "SETUSER", "producer", "reset", "on", ">secret", "+lpush", "~taskbatch:*")
    client = Client(server.url.replace("redis://", "redis://producer:secret@"))

    client.enqueue("t")
    with pytest.raises(ConfigError):
        client.enqueue("t", delay=1)

    assert len(tasks(admin)) == 1
    assert not admin.exists("taskbatch:queues")
    client.close()


def test_part_of_many_is_told(client: Client, admin: redis.Redis) -> None:
    admin.set("taskbatch:{broken}:pending", "x")

    with pytest.raises(EnqueueError, match="1500 tasks are enqueued, the rest is not: WRONGTYPE") as caught:
        client.enqueue_many([*(Item("t", n) for n in range(1500)), Item("t", queue="broken")])

    assert [one.id for one in caught.value.enqueued] == [task.id for task in tasks(admin)]
    assert caught.value.unknown == []
    assert isinstance(caught.value.problem, ConfigError)


def test_a_payload_too_large_in_the_middle_says_what_is_in(client: Client, admin: redis.Redis) -> None:
    payloads = [*(b"x" for _ in range(1200)), b"x" * (1024 * 1024 + 1)]

    with pytest.raises(EnqueueError) as caught:
        client.enqueue_many(payloads, "t")

    assert isinstance(caught.value.problem, PayloadTooLargeError)
    assert len(caught.value.enqueued) == admin.llen(PENDING) == 1000


def test_an_iterable_that_fails_says_what_is_in(client: Client, admin: redis.Redis) -> None:
    def rows(count: int) -> Iterator[int]:
        yield from range(count)
        raise KeyError("row")

    with pytest.raises(KeyError):
        client.enqueue_many(rows(5), "t")
    with pytest.raises(EnqueueError, match="row") as caught:
        client.enqueue_many(rows(1005), "t")

    assert len(caught.value.enqueued) == admin.llen(PENDING) == 1000


class Swallower:
    """Passes commands on, and loses the reply to the n-th push before it cuts the line."""

    def __init__(self, server: Server, lose: int) -> None:
        self._upstream = ("127.0.0.1", server.port)
        self._lose = lose
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with near, socket.create_connection(self._upstream) as far:
                self._serve(near, far)

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        while request := near.recv(1 << 20):
            far.sendall(request)
            # One at a time: the client sends, waits, and reads one line for what is tested here.
            near.settimeout(0.05)
            while True:
                try:
                    more = near.recv(1 << 20)
                except TimeoutError:
                    break
                if not more:
                    return
                far.sendall(more)
            near.settimeout(None)
            reply = far.recv(1 << 20)
            if b"LPUSH" in request or b"EVAL" in request:
                self._lose -= 1
                if self._lose == 0:
                    return
            near.sendall(reply)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def swallow(server: Server) -> Iterator[Callable[[int], Swallower]]:
    started: list[Swallower] = []

    def start(lose: int) -> Swallower:
        started.append(Swallower(server, lose))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_a_lost_reply_is_a_doubt_and_nothing_is_sent_twice(
    swallow: Callable[[int], Swallower], admin: redis.Redis
) -> None:
    with Client(swallow(1).url) as client:
        with pytest.raises(DoubtError, match=r"not known whether task .* was enqueued; .* unique_key") as caught:
            client.enqueue("email.send", 1)
        client.enqueue("email.send", 2)

    first, second = tasks(admin)
    assert (first.payload, second.payload) == (b"1", b"2")
    assert first.id in str(caught.value)


def test_enqueued_again_with_a_unique_key_it_is_there_once(
    swallow: Callable[[int], Swallower], admin: redis.Redis
) -> None:
    # The first call of the script is answered with NOSCRIPT, the second is the one that counts.
    with Client(swallow(2).url) as client:
        with pytest.raises(DoubtError):
            client.enqueue("t", unique_key="k", id="mine")
        again = client.enqueue("t", unique_key="k", id="mine")

    assert again == Enqueued("mine", duplicate=True)
    assert [task.id for task in tasks(admin)] == ["mine"]


def test_a_lost_reply_in_many_says_what_is_in_and_what_is_not_known(
    swallow: Callable[[int], Swallower], admin: redis.Redis
) -> None:
    with Client(swallow(2).url) as client, pytest.raises(EnqueueError) as caught:
        client.enqueue_many(range(2500), "t")

    there = [task.id for task in tasks(admin)]
    error = caught.value
    assert there == [*(one.id for one in error.enqueued), *error.unknown]
    assert (len(error.enqueued), len(error.unknown)) == (1000, 1000)
    assert isinstance(error.problem, DoubtError)


def test_a_server_that_restarted_while_we_were_idle_is_no_doubt(own_server: StartServer) -> None:
    server = own_server(appendonly=True)
    with Client(server.url) as client:
        client.enqueue("t", "before")
        server.restart()
        time.sleep(1.1)

        client.enqueue("t", "after")

    assert [task.payload for task in tasks(server.client())] == [b"before", b"after"]


def test_a_server_that_is_gone_is_unreachable_and_nothing_is_sent(own_server: StartServer) -> None:
    server = own_server()
    with Client(server.url) as client:
        client.enqueue("t")
        server.stop()
        time.sleep(1.1)

        with pytest.raises(UnreachableError):
            client.enqueue("t")
