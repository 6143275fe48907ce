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
    if name in {"dead", "history"}:
        return [(_letter if name == "dead" else _ending)(_pairs(fields)) for _, fields in reply]
    if name not in _READ or name == "paused":
        return reply
    fields = _pairs(reply)
    match name:
        case "scheduled":
            return {entry: int(score) for entry, score in fields.items()}
        case "runs":
            return {run: _lease(int(score), now) for run, score in fields.items()}
        case "totals":
            return {name: int(value) for name, value in fields.items() if _counts(name, value)}
    return {"runs:info": set(fields), "config": fields, "limit": tuple(int(fields.get(name, 0)) for name in "wn")}[name]


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _letter(fields: dict[str, str]) -> Letter:
    return Letter(fields["task"], fields["reason"], fields["run"])


def _ending(fields: dict[str, str]) -> Ending:
    return Ending(fields["run"], fields["result"], int(fields["count"]), fields.get("idle") == "1")


def _lease(score: int, now: int) -> str:
    if score < 0:
        return REAPING
    return LIVE if score >= now else EXPIRED


def _counts(name: str, value: str) -> bool:
    return not name.startswith("last_") and value != "0"
