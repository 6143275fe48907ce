"""Reading and pushing under the lock, with a real server and a real gateway."""

from __future__ import annotations

import logging
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskbatch.errors import UnreachableError
from taskbatch.metrics.publish import PushLock, publish
from taskbatch.metrics.push import PushError, gateway
from taskbatch.metrics.snapshot import Snapshot
from taskbatch.metrics.target import push_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import redis

    from tests.monitoring import Pushgateway
    from tests.servers import Server

LUA = Path(__file__).parents[2] / "lua"
LOCK = "taskbatch:{mail}:totals:push"
TOTALS = "taskbatch:{mail}:totals"
CLAIMED = re.compile(r'^taskbatch_claimed_total\{.*queue="mail".*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Eval:
    """Calls scripts in full, over a plain client."""

    client: redis.Redis

    def call(self, name: str, keys: Sequence[str], args: Sequence[str | bytes | int]) -> object:
        return self.client.eval((LUA / f"{name}.lua").read_text(), len(keys), *keys, *args)


@pytest.fixture
def client(server: Server) -> redis.Redis:
    return server.client()


@pytest.fixture
def lock(client: redis.Redis) -> PushLock:
    return PushLock(Eval(client), LOCK, token="me")


def read_from(client: redis.Redis) -> Callable[[], Snapshot]:
    def read() -> Snapshot:
        totals = {field.decode(): int(count) for field, count in client.hgetall(TOTALS).items()}
        return Snapshot("mail", totals, {}, paused=False, oldest_pending_ms=None, version="1")

    return read


def claimed(text: str) -> int:
    return max((int(float(value)) for value in CLAIMED.findall(text)), default=0)


def test_totals_arrive_and_the_lock_is_free_again(
    client: redis.Redis, lock: PushLock, pushgateway: Pushgateway
) -> None:
    client.hset(TOTALS, "claimed", 5)

    assert publish("mail", read_from(client), gateway(push_target(pushgateway.url)), lock, 5.0) is True

    assert claimed(pushgateway.metrics()) == 5
    assert client.keys("*") == [TOTALS.encode()]


def test_a_busy_lock_is_not_waited_for(client: redis.Redis, lock: PushLock, caplog: pytest.LogCaptureFixture) -> None:
    client.set(LOCK, "other", px=60_000)
    caplog.set_level(logging.DEBUG)
    pushed: list[Snapshot] = []

    assert publish("mail", read_from(client), lambda snapshot, _: pushed.append(snapshot), lock, 5.0) is True

    assert pushed == []
    assert client.get(LOCK) == b"other!"
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_the_holder_looks_again_for_who_came_meanwhile(client: redis.Redis, lock: PushLock) -> None:
    other = PushLock(Eval(client), LOCK, token="other")
    pushed: list[int] = []

    def push_once(snapshot: Snapshot, timeout: float) -> None:
        if not pushed:
            client.hincrby(TOTALS, "claimed", 1)
            assert publish("mail", read_from(client), never, other, 5.0) is True
        pushed.append(snapshot.totals.get("claimed", 0))

    assert publish("mail", read_from(client), push_once, lock, 5.0) is True

    assert pushed == [0, 1]
    assert client.exists(LOCK) == 0


def never(snapshot: Snapshot, timeout: float) -> None:
    pytest.fail("pushed without the lock")


def test_a_lock_that_ended_while_reading_calls_for_another_read(client: redis.Redis, lock: PushLock) -> None:
    pushed: list[int] = []
    read, reads = read_from(client), []

    def slow_read() -> Snapshot:
        snapshot = read()
        if not reads:
            # Another run came, pushed something newer and left.
            client.delete(LOCK)
            client.hincrby(TOTALS, "claimed", 1)
        reads.append(snapshot)
        return snapshot

    push_once = lambda snapshot, _: pushed.append(snapshot.totals.get("claimed", 0))  # noqa: E731 - it is short
    assert publish("mail", slow_read, push_once, lock, 5.0) is True

    assert pushed == [1]


def test_a_lock_that_another_took_while_reading_is_theirs(client: redis.Redis, lock: PushLock) -> None:
    read = read_from(client)

    def slow_read() -> Snapshot:
        client.set(LOCK, "other", px=60_000)
        return read()

    assert publish("mail", slow_read, never, lock, 5.0) is True

    assert client.get(LOCK) == b"other!"


def test_a_lock_that_was_lost_while_pushing_calls_for_another_look(client: redis.Redis, lock: PushLock) -> None:
    pushed: list[int] = []

    def push_once(snapshot: Snapshot, timeout: float) -> None:
        if not pushed:
            client.delete(LOCK)
            client.hincrby(TOTALS, "claimed", 1)
        pushed.append(snapshot.totals.get("claimed", 0))

    assert publish("mail", read_from(client), push_once, lock, 5.0) is True

    assert pushed == [0, 1]
    assert client.exists(LOCK) == 0


def test_the_lock_outlives_the_time_there_is(client: redis.Redis, lock: PushLock) -> None:
    left: list[float] = []

    def push_once(snapshot: Snapshot, timeout: float) -> None:
        left.append(client.pttl(LOCK) / 1000 - timeout)

    publish("mail", read_from(client), push_once, lock, 5.0)

    assert 1.5 < left[0] < 2.5


def test_looking_again_ends_with_the_time(
    client: redis.Redis, lock: PushLock, caplog: pytest.LogCaptureFixture
) -> None:
    other = PushLock(Eval(client), LOCK, token="other")

    def push_once(snapshot: Snapshot, timeout: float) -> None:
        assert timeout <= 0.3
        other.take(5.0)
        time.sleep(0.05)

    began = time.monotonic()
    assert publish("mail", read_from(client), push_once, lock, 0.3) is True

    assert 0.3 <= time.monotonic() - began < 0.6
    assert client.exists(LOCK) == 0
    assert caplog.messages == ["queue mail: other runs have newer metrics, and no time is left to push them"]


def test_a_read_that_takes_all_the_time(
    client: redis.Redis, lock: PushLock, pushgateway: Pushgateway, caplog: pytest.LogCaptureFixture
) -> None:
    read = read_from(client)

    def slow_read() -> Snapshot:
        time.sleep(0.2)
        return read()

    assert publish("mail", slow_read, gateway(push_target(pushgateway.url)), lock, 0.1) is False

    assert caplog.messages == [f"queue mail: metrics not pushed: {pushgateway.url}: no time left"]
    assert client.exists(LOCK) == 0


def test_no_time_at_all(client: redis.Redis, lock: PushLock, caplog: pytest.LogCaptureFixture) -> None:
    assert publish("mail", read_from(client), never, lock, 0.0) is False

    assert caplog.messages == ["queue mail: metrics not pushed: no time left"]
    assert client.keys("*") == []


def failing(error: Exception) -> Callable[..., Snapshot]:
    def fail(*_: object) -> Snapshot:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PushError("http://gw: 500 Oh"), "http://gw: 500 Oh"),
        (ValueError("two\nlines"), "two lines"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
)
def test_a_failing_push_is_one_warning_and_frees_the_lock(
    client: redis.Redis, lock: PushLock, caplog: pytest.LogCaptureFixture, error: Exception, said: str
) -> None:
    def push_once(snapshot: Snapshot, timeout: float) -> None:
        # Even when it is dirty: nobody must wait for us.
        client.set(LOCK, "me!", keepttl=True)
        raise error

    assert publish("mail", read_from(client), push_once, lock, 5.0) is False

    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"queue mail: metrics not pushed: {said}")
    ]
    assert client.exists(LOCK) == 0


def test_a_failing_read_is_one_warning_and_frees_the_lock(
    client: redis.Redis, lock: PushLock, caplog: pytest.LogCaptureFixture
) -> None:
    assert publish("mail", failing(ValueError("no number")), never, lock, 5.0) is False

    assert caplog.messages == ["queue mail: metrics not pushed: no number"]
    assert client.exists(LOCK) == 0


def test_without_redis_there_is_one_warning_and_no_second_wait(
    client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    class Lost:
        def call(self, name: str, *_: object) -> object:
            calls.append(name)
            msg = "cannot reach Redis"
            raise UnreachableError(msg)

    assert publish("mail", read_from(client), never, PushLock(Lost(), LOCK), 5.0) is False

    assert calls == ["push_lock"]
    assert caplog.messages == ["queue mail: metrics not pushed: cannot reach Redis"]


def test_a_lock_of_another_type_is_one_warning(
    client: redis.Redis, lock: PushLock, caplog: pytest.LogCaptureFixture
) -> None:
    client.rpush(LOCK, "a")

    assert publish("mail", read_from(client), never, lock, 5.0) is False

    assert len(caplog.records) == 1
    assert "WRONGTYPE" in caplog.text
    assert client.lrange(LOCK, 0, -1) == [b"a"]


def test_overlapping_publishers_never_let_a_counter_go_back(server: Server, pushgateway: Pushgateway) -> None:
    publishers, rounds = 20, 10
    push_once = gateway(push_target(pushgateway.url))
    results: list[bool] = []
    seen: list[int] = []

    def one(number: int) -> None:
        client = server.client()
        read = read_from(client)

        def uneven_read() -> Snapshot:
            snapshot = read()
            time.sleep(0.02 * (number % 4))
            return snapshot

        for _ in range(rounds):
            client.hincrby(TOTALS, "claimed", 1)
            results.append(publish("mail", uneven_read, push_once, PushLock(Eval(client), LOCK), 30.0))
            time.sleep(0.05)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(publishers)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.append(claimed(pushgateway.metrics()))
        time.sleep(0.02)
    seen.append(claimed(pushgateway.metrics()))

    assert seen == sorted(seen)
    assert seen[-1] == publishers * rounds
    assert len(set(seen)) > 5, "the scrapes saw too little to prove anything"
    assert results == [True] * (publishers * rounds)
    assert [group["labels"] for group in pushgateway.groups()] == [{"job": "taskbatch", "queue": "mail"}]
    assert server.client().keys("*") == [TOTALS.encode()]
