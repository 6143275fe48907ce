"""What is asked of the server before anything is touched."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskbatch.connect import checked
from taskbatch.errors import ConfigError

if TYPE_CHECKING:
    from taskbatch.connect import Link

log = logging.getLogger(__name__)

OLDEST_REDIS = (7, 0)
OLDEST_VALKEY = (7, 2)


@dataclass(frozen=True, slots=True)
class Server:
    """Name, version and how long it has been up, in seconds."""

    name: str
    version: str
    uptime: float

    def may_be_reaped(self, lease: float, *, embedded: bool) -> bool:
        """Return whether an expired lease means a crash: nobody could renew at a server that was away.

        `embedded`: it lives only while commands use it, so its start cut nobody off.
        """
        return embedded or self.uptime >= lease


def check_server(link: Link) -> Server:
    """Return what the server says of itself; ConfigError when it is too old or will not say."""
    text = checked(link.exchange([("INFO", "server")])[0])
    info = dict(line.split(":", 1) for line in text.decode("utf-8", "replace").splitlines() if ":" in line)
    # Valkey says it is Redis 7.2.4 and gives its own version beside it.
    name = "valkey" if "valkey_version" in info else "redis"
    version = info.get(f"{name}_version", "0")
    oldest = OLDEST_VALKEY if name == "valkey" else OLDEST_REDIS
    if _numbers(version) < oldest:
        wanted = f"Redis {OLDEST_REDIS[0]}.{OLDEST_REDIS[1]} or Valkey {OLDEST_VALKEY[0]}.{OLDEST_VALKEY[1]}"
        msg = f"{link.address} is {name} {version}; {wanted} or later is needed"
        raise ConfigError(msg)
    return Server(name, version, float(info.get("uptime_in_seconds", "0")))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
