"""What a survey finds, against what was put there by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskbatch.connect import Link
from taskbatch.errors import ConfigError
from taskbatch.keys import Keys
from taskbatch.report import Remaining
from taskbatch.settings import RedisSettings
from taskbatch.survey import survey, to_snapshot
from taskbatch.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.servers import Server

KEYS = Keys("taskbatch", "mail")


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    link = Link(RedisSettings(url=server.url))
    yield link
    link.close()


def task(enqueued_at_ms: int) -> bytes:
    return Task(id="t", type="x", enqueued_at_ms=enqueued_at_ms).SerializeToString()


def test_an_empty_queue(link: Link) -> None:
    found = survey(link, KEYS)

    assert found.queue == "mail"
    assert found.now_ms > 1_600_000_000_000
    assert found.states == {
        "pending": 0, "recovered": 0, "suspects": 0, "processing": 0, "scheduled": 0, "dead": 0,
    }  # fmt: skip
    assert (found.oldest_pending_ms, found.next_due_ms, found.paused, found.limit) == (None, None, None, None)
    assert (found.runs, found.totals) == ([], {})


def test_a_queue_that_has_everything(server: Server, link: Link) -> None:
    redis = server.client()
    redis.lpush(KEYS.pending, task(2000), task(3000))
    redis.lpush(KEYS.recovered, b"1" + task(1500))
    redis.lpush(KEYS.suspects, b"2" + task(1), b"2" + task(1), b"2" + task(1))
    redis.zadd(KEYS.scheduled, {b"0" + task(1): 9000, b"0" + task(2): 8000})
    redis.xadd(KEYS.dead, {"task": "x"})
    redis.set(KEYS.paused, "upgrade", px=60_000)
    redis.hset(KEYS.config, "limit", "50 1000")
    redis.hset(KEYS.totals, mapping={"claimed": 12, "tasks:succeeded:x": 7, "foreign": "text"})
    redis.zadd(KEYS.runs, {"gone": 5000, "reaped": -6000, "alive": 9_000_000_000_000})
    redis.lpush(KEYS.processing("alive", 0), "a", "b")
    redis.lpush(KEYS.processing("alive", 2), "c")
    redis.lpush(KEYS.processing("gone", 1), "d")

    found = survey(link, KEYS)

    assert found.states == {
        "pending": 2, "recovered": 1, "suspects": 3, "processing": 4, "scheduled": 2, "dead": 1,
    }  # fmt: skip
    assert found.oldest_pending_ms == 1500
    assert found.next_due_ms == 8000
    assert found.paused == "upgrade"
    assert 50_000 < (found.paused_for_ms or 0) <= 60_000
    assert found.limit == "50 1000"
    assert found.totals == {"claimed": 12, "tasks:succeeded:x": 7}
    assert {run.run: (run.expires_ms, run.held, run.live(found.now_ms)) for run in found.runs} == {
        "alive": (9_000_000_000_000, 3, True),
        "gone": (5000, 1, False),
        "reaped": (6000, 0, False),
    }
    assert found.reapable == 1
    assert found.remaining == Remaining(pending=2, recovered=1, suspects=3, scheduled=2, processing=4)


def test_it_takes_two_round_trips_at_most(server: Server, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    server.client().zadd(KEYS.runs, {f"run{n}": 5000 for n in range(50)})
    sent: list[int] = []
    exchange = link.exchange

    def counted(commands: Any, **options: Any) -> Any:
        sent.append(len(commands))
        return exchange(commands, **options)

    monkeypatch.setattr(link, "exchange", counted)
    survey(link, KEYS)

    assert len(sent) == 2


def test_the_oldest_is_unknown_when_the_next_task_does_not_say_or_is_none(server: Server, link: Link) -> None:
    redis = server.client()
    for content in (task(0), task(-5), b"\xff\xff", b""):
        redis.delete(KEYS.pending)
        redis.lpush(KEYS.pending, content)
        assert survey(link, KEYS).oldest_pending_ms is None


@pytest.mark.parametrize("name", ["pending", "recovered", "suspects", "scheduled", "dead", "runs", "totals", "config"])
def test_a_key_of_a_wrong_type_is_a_configuration_error(server: Server, link: Link, name: str) -> None:
    server.client().set(getattr(KEYS, name), "not ours")
    with pytest.raises(ConfigError, match="WRONGTYPE"):
        survey(link, KEYS)


def test_metrics_are_made_from_it(server: Server, link: Link) -> None:
    redis = server.client()
    redis.lpush(KEYS.pending, task(2000))
    redis.set(KEYS.paused, "x")
    redis.hset(KEYS.totals, "claimed", 3)

    snapshot = to_snapshot(survey(link, KEYS), "1.2.3")

    assert (snapshot.queue, snapshot.version, snapshot.paused) == ("mail", "1.2.3", True)
    assert (snapshot.oldest_pending_ms, snapshot.totals, snapshot.states["pending"]) == (2000, {"claimed": 3}, 1)
