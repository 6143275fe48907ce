"""What a Redis server did between two moments: commands by name, bytes in and out, CPU seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

_LOOKING = frozenset({"info", "config|resetstat", "ping"})


@dataclass(frozen=True)
class Wire:
    """Calls and microseconds by command, those inside of scripts included; bytes; CPU seconds of the server."""

    calls: Mapping[str, int]
    microseconds: Mapping[str, int]
    received: int
    sent: int
    cpu: float

    def since(self, before: Wire) -> Wire:
        """Return what came after `before`."""
        return Wire(
            _less(self.calls, before.calls),
            _less(self.microseconds, before.microseconds),
            self.received - before.received,
            self.sent - before.sent,
            self.cpu - before.cpu,
        )

    @property
    def commands(self) -> int:
        """How many commands were executed."""
        return sum(self.calls.values())

    @property
    def bytes(self) -> int:
        """How many bytes went over the wire, in either direction."""
        return self.received + self.sent


def look(client: redis.Redis) -> Wire:
    """Ask the server, which counts the asking, too: a few hundred bytes."""
    return read(client.info("commandstats"), client.info("stats"), client.info("cpu"))


def read(commandstats: Mapping[str, Any], stats: Mapping[str, Any], cpu: Mapping[str, Any]) -> Wire:
    """Return what three sections of INFO say, as redis-py parses them."""
    commands = {name.removeprefix("cmdstat_"): values for name, values in commandstats.items()}
    own = {name: values for name, values in commands.items() if name not in _LOOKING}
    return Wire(
        {name: int(values["calls"]) for name, values in own.items()},
        {name: int(values["usec"]) for name, values in own.items()},
        int(stats["total_net_input_bytes"]),
        int(stats["total_net_output_bytes"]),
        float(cpu["used_cpu_sys"]) + float(cpu["used_cpu_user"]),
    )


def _less(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    found = {name: count - before.get(name, 0) for name, count in now.items()}
    return {name: count for name, count in found.items() if count}
