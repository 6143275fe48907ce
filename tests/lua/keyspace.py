"""All keys of a database as plain values, to seed them and to compare every one of them.

A key of the queue `q` goes by its short name: `pending` is `taskbatch:{q}:pending`. Bytes are text, one
character a byte, so that expected values read well. What expires has its name end in `+ttl`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

Dump: TypeAlias = dict[str, Any]

QUEUE = "taskbatch:{q}:"
ENTRY_ID = re.compile(rb"\d+-\d+")
HASHES = {"runs:info", "config", "totals", "limit"}
ZSETS = {"runs", "scheduled"}
STREAMS = {"dead", "history"}


class Near:
    """Equals every number from `value` to `value + within`: a time that the server read a moment later."""

    def __init__(self, value: float, within: float = 3000) -> None:
        self.value, self.within = value, within

    def __eq__(self, other: object) -> bool:
        return self.value <= float(str(other)) <= self.value + self.within

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"Near({self.value}, {self.within})"


def text(value: Any) -> Any:
    """Return a reply with each byte as one character."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (list, tuple)):
        return [text(item) for item in value]
    return value


def raw(value: object) -> bytes:
    """Return what `text` made of bytes as bytes again."""
    return value if isinstance(value, bytes) else str(value).encode("latin-1")


def full(name: str) -> str:
    """Return the key a short name stands for; a name with a colon and a prefix of its own stays."""
    return name if name.startswith("taskbatch:") else QUEUE + name


def dump(client: redis.Redis) -> Dump:
    """Return everything in the database; streams as the list of their entries' fields."""
    found: Dump = {}
    for key in client.keys("*"):
        name = text(key).removeprefix(QUEUE)
        expires = client.pttl(key) >= 0
        found[name + (" +ttl" if expires else "")] = _value(client, key)
    return found


def _value(client: redis.Redis, key: bytes) -> Any:
    match text(client.type(key)):
        case "list":
            return text(client.lrange(key, 0, -1))
        case "zset":
            return {text(member): score for member, score in client.zrange(key, 0, -1, withscores=True)}
        case "hash":
            return {text(field): text(value) for field, value in client.hgetall(key).items()}
        case "stream":
            return [{text(f): text(v) for f, v in fields.items()} for _, fields in client.xrange(key)]
        case "set":
            return {text(member) for member in client.smembers(key)}
        case _:
            return text(client.get(key))


def seed(client: redis.Redis, keys: Mapping[str, Any]) -> None:
    """Write keys as `dump` shows them; lists from left to right, streams in order."""
    for name, value in keys.items():
        key = full(name)
        if isinstance(value, str):
            client.set(key, raw(value))
        elif name in ZSETS:
            client.zadd(key, {raw(member): score for member, score in value.items()})
        elif name in HASHES or key.startswith("taskbatch:limit:"):
            client.hset(key, mapping=value)
        elif name in STREAMS:
            for fields in value:
                client.xadd(key, fields)
        else:
            client.rpush(key, *map(raw, value))


def same_except(before: Dump, **changes: Any) -> Dump:
    """Return `before` with the keys in `changes` as given; None = gone. In names, `__` stands for `:`."""
    after = before | {name.replace("__", ":"): value for name, value in changes.items()}
    return {name: value for name, value in after.items() if value is not None}
