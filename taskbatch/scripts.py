"""The state machine in `lua/`: loads its files, calls them, heals when Redis forgot them."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.exceptions import NoPermissionError, NoScriptError, ResponseError

from taskbatch.connect import Link, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER = os.path.dirname(str(import_module("taskbatch.lua").__file__))  # noqa: PTH120 - pathlib costs 11 ms of a run that finds nothing
_INCLUDE = re.compile(r"^--@include (\w+)$", re.MULTILINE)
_LINE = re.compile(r"@user_script: ?(\d+)")
_COMMAND = re.compile(r"redis\.p?call\('(\w+)'")


@dataclass(frozen=True, slots=True)
class Script:
    """One file of `lua/` with what it includes, ready to be called."""

    name: str
    source: bytes
    sha: str


class Call(NamedTuple):
    """A call of a script: its name, every key it touches, its arguments."""

    script: str
    keys: list[str]
    args: list[Any]


@cache
def script(name: str) -> Script:
    """Return the script `lua/<name>.lua`."""
    source = _INCLUDE.sub(lambda match: _read(f"include/{match[1]}"), _read(name)).encode()
    return Script(name, source, hashlib.sha1(source, usedforsecurity=False).hexdigest())


class Scripts:
    """Calls scripts over one link. `reordered`: whether the last exchange ran in another order than it was given in."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.reordered = False

    def call(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:  # noqa: ANN401 - a Redis reply
        """Call one script; raises what `connect.checked` raises for an error reply."""
        return checked(self.exchange([Call(name, list(keys), list(args))])[0])

    def exchange(self, calls: Sequence[Call]) -> list[Any]:
        """Call scripts in one round trip and return their replies; error replies are returned, not raised.

        Redis runs them one after the other in this order. One it has forgotten (SCRIPT FLUSH, restart,
        failover) did nothing, so it is sent again in full; those after it have run by then.
        """
        replies = self.link.exchange([_evalsha(call) for call in calls])
        forgotten = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        self.reordered = bool(forgotten)
        if forgotten:
            again = self.link.exchange([_eval(calls[i]) for i in forgotten])
            for i, reply in zip(forgotten, again, strict=True):
                replies[i] = reply
        for i, reply in enumerate(replies):
            if isinstance(reply, ResponseError) and "user executing the script" in str(reply):
                replies[i] = _not_permitted(reply, calls[i].script)
        return replies


def _not_permitted(error: ResponseError, name: str) -> NoPermissionError:
    """Return the error with the command that was refused: Redis 7.0 says only in which line of the script it is."""
    line, lines = _LINE.search(str(error)), script(name).source.decode().splitlines()
    commands = _COMMAND.findall(lines[int(line[1]) - 1]) if line and 0 < int(line[1]) <= len(lines) else []
    return NoPermissionError(f"{' or '.join(commands) or 'a command'} in {name}.lua: {error}")


def _evalsha(call: Call) -> tuple[Any, ...]:
    return ("EVALSHA", script(call.script).sha, len(call.keys), *call.keys, *call.args)


def _eval(call: Call) -> tuple[Any, ...]:
    return ("EVAL", script(call.script).source, len(call.keys), *call.keys, *call.args)


def _read(name: str) -> str:
    with open(f"{_FOLDER}/{name}.lua", encoding="utf-8") as file:  # noqa: PTH123 - as above
        return file.read()
