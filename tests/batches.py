"""A queue on a real server as tests of runs see it: put tasks in, run a batch in this process, look at every key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import taskbatch.lua

from taskbatch.batch import run_batch
from taskbatch.keys import Keys
from taskbatch.registry import Registry
from taskbatch.scripts import script
from taskbatch.settings import PushSettings, RedisSettings, RunSettings
from taskbatch.signals import Signals
from taskbatch.task import Task
from tests.daemon import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.declaration import Job
    from taskbatch.report import Report
    from tests.servers import Server

PARTS = ("succeeded", "retried", "released", "dead", "expired", "lost")

SHORT_LEASE = 3.0
"""The shortest lease there is, in seconds: tests that wait for one to end do not wait long."""


def task(kind: str = "note", id: str = "", **fields: Any) -> bytes:  # noqa: A002 - the fields of a Task
    """Return the bytes of a task whose payload is null unless told otherwise."""
    return Task(id=id, type=kind, payload=fields.pop("payload", b"null"), **fields).SerializeToString()


def eventually(condition: Callable[[], object], what: str = "it", *, seconds: float = 20.0) -> None:
    """Return when `condition` holds; TimeoutError if it does not within `seconds`."""
    wait_until(lambda: bool(condition()), seconds=seconds, what=what)


def check_sum(report: Report) -> None:
    """Every task that was claimed has exactly one outcome."""
    told = report.as_dict()
    assert told["claimed"] == sum(told[part] for part in PARTS), told


class Batches:
    """One queue, `keys`, on `server`; `redis` is a plain client."""

    def __init__(self, server: Server, queue: str = "default") -> None:
        self.server = server
        self.redis = server.client()
        self.keys = Keys("taskbatch", queue)

    def load_scripts(self) -> None:
        """Let the server know all scripts, so that the first call of each does something."""
        for path in Path(str(taskbatch.lua.__file__)).parent.glob("*.lua"):
            self.redis.script_load(script(path.stem).source)

    def push(self, *tasks: bytes, queue: str | None = None) -> None:
        """Put tasks into pending, the first one first."""
        self.redis.lpush(self.keys_of(queue).pending, *tasks)

    def keys_of(self, queue: str | None) -> Keys:
        return self.keys if queue is None else Keys("taskbatch", queue)

    def run(self, *jobs: Job, signals: Signals | None = None, url: str | None = None, **settings: Any) -> Report:
        """Do one run in this process and check that its report adds up."""
        settings.setdefault("queues", (self.keys.queue,))
        settings.setdefault("wait", 0.0)
        settings.setdefault("max_tasks", None)
        settings.setdefault("max_runtime", 60.0)
        timeout = settings.pop("redis_timeout", 5.0)
        push = settings.pop("push", PushSettings())
        report = run_batch(
            RunSettings(**settings),
            RedisSettings(url=url or self.server.url, timeout=timeout),
            push,
            lambda: Registry(jobs),
            signals=signals or Signals(),
        )
        check_sum(report)
        return report

    def lengths(self, queue: str | None = None) -> dict[str, int]:
        """Return how many tasks are where, without the places that are empty."""
        keys, redis = self.keys_of(queue), self.redis
        found = {
            "pending": redis.llen(keys.pending),
            "recovered": redis.llen(keys.recovered),
            "suspects": redis.llen(keys.suspects),
            "scheduled": redis.zcard(keys.scheduled),
            "dead": redis.xlen(keys.dead),
            "processing": sum(redis.llen(name) for name in redis.keys(f"{keys.processing('*', 0)[:-1]}*")),
        }
        return {place: count for place, count in found.items() if count}

    def totals(self, queue: str | None = None) -> dict[str, int]:
        return {name.decode(): int(value) for name, value in self.redis.hgetall(self.keys_of(queue).totals).items()}

    def dead(self) -> list[dict[str, bytes]]:
        """Return the fields of all dead letters, oldest first."""
        return [
            {name.decode(): value for name, value in fields.items()} for _, fields in self.redis.xrange(self.keys.dead)
        ]

    def history(self) -> list[dict[str, str]]:
        return [
            {name.decode(): value.decode() for name, value in fields.items()}
            for _, fields in self.redis.xrange(self.keys.history)
        ]

    def scheduled(self) -> list[tuple[bytes, float]]:
        return list(self.redis.zrange(self.keys.scheduled, 0, -1, withscores=True))

    def now_ms(self) -> int:
        seconds, micros = self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def make_due(self) -> None:
        """Let everything scheduled be due now."""
        for entry, _ in self.scheduled():
            self.redis.zadd(self.keys.scheduled, {entry: self.now_ms() - 1})

    def names(self) -> set[str]:
        """Return all keys in the database without prefix and queue."""
        start = f"taskbatch:{{{self.keys.queue}}}:"
        return {name.decode().removeprefix(start) for name in self.redis.keys("*")}

    def check_base_line(self) -> None:
        """Nothing is left but what a queue that was used keeps."""
        assert self.names() <= {"config", "totals", "history", "taskbatch:queues"}, self.names()

    def wait_until_it_reaps(self, lease: float = SHORT_LEASE) -> None:
        """Wait until the server is up for a lease: before, nothing is reaped."""
        eventually(lambda: self.redis.info("server")["uptime_in_seconds"] >= lease, "uptime")
