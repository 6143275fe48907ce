"""Everything in the database, in two round trips, in the form of `Model.view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lua.keyspace import QUEUE, text
from tests.model.model import EXPIRED, LIVE, REAPING, Ending, Letter

if TYPE_CHECKING:
    from taskbatch.connect import Link

View = dict[str, Any]

_READ = {
    "scheduled": ("ZRANGE", 0, -1, "WITHSCORES"),
    "runs": ("ZRANGE", 0, -1, "WITHSCORES"),
    "dead": ("XRANGE", "-", "+"),
    "history": ("XRANGE", "-", "+"),
    "runs:info": ("HGETALL",),
    "totals": ("HGETALL",),
    "config": ("HGETALL",),
    "limit": ("HGETALL",),
    "paused": ("GET",),
}


def look(link: Link) -> View:
    """Return every key by its short name; a foreign one as it is called, with its value as a list or an error."""
    (seconds, micros), found = link.exchange([("TIME",), ("KEYS", "*")])
    now = int(seconds) * 1000 + int(micros) // 1000
    keys = [str(text(key)) for key in found]
    names = [key.removeprefix(QUEUE) for key in keys]
    replies = link.exchange([_command(name, key) for name, key in zip(names, keys, strict=True)]) if keys else []
    view = {name: _value(name, text(reply), now) for name, reply in zip(names, replies, strict=True)}
    return {name: value for name, value in view.items() if value}


def _command(name: str, key: str) -> tuple[Any, ...]:
    if name.startswith("unique:"):
        return ("GET", key)
    verb, *arguments = _READ.get(name, ("LRANGE", 0, -1))
    return (verb, key, *arguments)


def _value(name: str, reply: Any, now: int) -> Any:
    match name:
        case "scheduled":
            return {entry: int(score) for entry, score in _pairs(reply).items()}
        case "runs":
            return {run: _lease(int(score), now) for run, score in _pairs(reply).items()}
        case "runs:info":
            return set(_pairs(reply))
        case "totals":
            return {name: int(value) for name, value in _pairs(reply).items() if _counts(name, value)}
        case "config":
            return _pairs(reply)
        case "limit":
            fields = _pairs(reply)
            return (int(fields["w"]), int(fields["n"]))
        case "dead":
            return [Letter(one["task"], one["reason"], one["run"]) for one in _entries(reply)]
        case "history":
            return [
                Ending(one["run"], one["result"], int(one["count"]), one.get("idle") == "1") for one in _entries(reply)
            ]
    return reply


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _entries(reply: list[Any]) -> list[dict[str, str]]:
    return [_pairs(fields) for _, fields in reply]


def _lease(score: int, now: int) -> str:
    if score < 0:
        return REAPING
    return LIVE if score >= now else EXPIRED


def _counts(name: str, value: str) -> bool:
    return not name.startswith("last_") and value != "0"
