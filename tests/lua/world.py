"""One queue on a real server, with every script to call; whoever touches a key it did not declare is caught.

The scripts run as a user who may touch exactly the keys of each call: the server notes every other access,
also one whose error a script swallows.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taskbatch.connect import Link
from taskbatch.scripts import Call, Scripts
from taskbatch.settings import RedisSettings
from tests.lua.keyspace import Dump, dump, full, raw, seed, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.servers import Server

LOTS = 256 * 1024
LEASE = 60_000

TYPES = {
    "pending": "list", "recovered": "list", "suspects": "list", "scheduled": "zset", "dead": "stream",
    "totals": "hash", "totals:push": "string", "history": "stream", "paused": "string", "limit": "hash",
}  # fmt: skip


def own(run: str) -> list[str]:
    """Return the names of a run's three lists."""
    return [f"processing:{run}:{n}" for n in range(3)]


def outcome(
    n: int,
    entry: str,
    verb: str,
    *,
    stored: str = "",
    detail: str | int = "",
    error: str = "",
    tally: str = "t",
    duration: int | str = -1,
    latency: int | str = -1,
    window: str = "",
    unique: str = "",
) -> list[Any]:
    """Return the arguments of one outcome of a `settle`."""
    return [n, raw(entry), verb, raw(stored), detail, error, tally, duration, latency, window, unique]


class World:
    """The queue `q`, seeded and read as an administrator, changed by scripts."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.admin = server.client()
        self.admin.execute_command("ACL", "SETUSER", "scripts", "reset", "on", ">secret", "+@all")
        self.admin.execute_command("ACL", "LOG", "RESET")
        self.link = Link(RedisSettings(server.url, username="scripts", password="secret"))
        self.scripts = Scripts(self.link)

    def close(self) -> None:
        self.link.close()

    # what is there

    def seed(self, **keys: Any) -> None:
        """Write keys by their short names; in names, `__` stands for `:`."""
        seed(self.admin, {name.replace("__", ":"): value for name, value in keys.items()})

    def hold(self, run: str, n: int, *entries: str) -> None:
        """Put entries into a run's own list, from left (newest) to right."""
        self.admin.rpush(full(own(run)[n]), *map(raw, entries))

    def lease(self, run: str, ms: int = LEASE) -> None:
        """Give a run a lease of `ms` from now; negative: it expired that long ago."""
        self.admin.zadd(full("runs"), {run: self.now + ms})

    def break_type(self, name: str) -> None:
        """Replace a key by one of a type that nobody expects there."""
        self.admin.delete(full(name))
        self.admin.sadd(full(name), "foreign")

    def dump(self) -> Dump:
        return dump(self.admin)

    @property
    def now(self) -> int:
        seconds, micros = self.admin.time()
        return seconds * 1000 + micros // 1000

    # the scripts

    def exchange(self, *calls: Call) -> list[Any]:
        """Call scripts in one round trip; error replies are returned."""
        touched = sorted({key for call in calls for key in call.keys})
        self.admin.execute_command("ACL", "SETUSER", "scripts", "resetkeys", *(f"~{key}" for key in touched))
        replies = self.scripts.exchange(calls)
        undeclared = [(entry["reason"], entry["object"]) for entry in self.admin.acl_log()]
        assert undeclared == [], "a script touched a key that it did not declare"
        return replies

    def call(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Call a script with keys by their short names; an error reply is raised."""
        reply = self.exchange(Call(script, [full(key) for key in keys], list(args)))[0]
        if isinstance(reply, Exception):
            raise reply
        return text(reply)

    def open_run(self, run: str, *, lease: int = LEASE, info: str = "{}", schema: int = 1, cap: int = 0) -> Any:
        keys = ["runs", "runs:info", "config", *TYPES]
        return self.call("open_run", keys, [run, lease, info, schema, cap, *TYPES.values()])

    def claim(self, run: str, want: int = 10, *, max_bytes: int = LOTS) -> Any:
        keys = ["runs", "paused", "config", "limit", "scheduled", "pending", "recovered", "suspects", "totals"]
        return self.call("claim", [*keys, *own(run)], [run, want, max_bytes])

    def claim_suspect(self, run: str) -> Any:
        keys = ["runs", "paused", "config", "limit", "suspects", "totals", *own(run)]
        return self.call("claim_suspect", keys, [run])

    def renew(self, run: str, lease: int = LEASE) -> Any:
        return self.call("renew", ["runs"], [run, lease])

    def settle(self, run: str, *outcomes: list[Any], unique: Sequence[str] = ()) -> Any:
        keys = ["scheduled", "pending", "recovered", "suspects", "dead", "totals", "limit", *own(run), *unique]
        args = [argument for one in outcomes for argument in one]
        return self.call("settle", keys, [run, len(outcomes), *args])

    def reap(self, run: str, count: int = 1000, *, max_bytes: int = LOTS, lease: int = LEASE) -> Any:
        keys = ["runs", "runs:info", "recovered", "suspects", "dead", "totals", "history", *own(run)]
        return self.call("reap", keys, [run, count, max_bytes, "reaper", lease])

    def promote(self, count: int = 1000, *, max_bytes: int = LOTS) -> Any:
        return self.call("promote", ["scheduled", "pending", "recovered", "suspects"], [count, max_bytes])

    def close_run(
        self, run: str, *, result: str = "success", reason: str = "empty", started: int = 1000, idle: bool = False
    ) -> Any:
        args = [run, result, reason, 0, started, 2_500_000, '{"claimed":0}', "1" if idle else "0"]
        return self.call("close_run", ["runs", "runs:info", "history", "totals", *own(run)], args)

    def enqueue(self, task: str, name: str = "id1", *, delay: int = 0, unique: str = "", ttl: int = LEASE) -> Any:
        keys = ["pending", "scheduled", *([f"unique:{unique}"] if unique else [])]
        return self.call("enqueue", keys, [raw(task), delay, name, ttl])


def sleep_ms(ms: float) -> None:
    """Let the server's clock go on."""
    time.sleep(ms / 1000)


@contextmanager
def full_server(world: World) -> Iterator[None]:
    """Leave the server without memory for a while."""
    world.admin.config_set("maxmemory", 1)
    try:
        yield
    finally:
        world.admin.config_set("maxmemory", 0)
