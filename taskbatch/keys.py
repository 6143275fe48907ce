"""Every key of a queue: template, type, meaning. All of a queue's share the hash tag `{queue}`."""

# ruff: noqa: D102 - the comment behind each key says what it holds

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from taskbatch.errors import ConfigError

QUEUE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
MAX_LIMIT_KEY = 64
"""A limit key longer than this many bytes is hashed into its key."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one queue. Raises ConfigError for a name or prefix that is not allowed."""

    prefix: str
    queue: str

    def __post_init__(self) -> None:
        if not QUEUE_NAME.fullmatch(self.queue):
            msg = f"queue name {self.queue!r}: 1 to 64 of letters, digits, '_', '.', '-'"
            raise ConfigError(msg)
        if not PREFIX.fullmatch(self.prefix):
            msg = f"key prefix {self.prefix!r}: 1 to 64 of letters, digits, '_', '.', ':', '-'"
            raise ConfigError(msg)

    def _of(self, name: str) -> str:
        return f"{self.prefix}:{{{self.queue}}}:{name}"

    # fmt: off
    @property
    def pending(self) -> str: return self._of("pending")          # list    task bytes; right end is next
    @property
    def recovered(self) -> str: return self._of("recovered")      # list    stored, digit 1: one run died holding it
    @property
    def suspects(self) -> str: return self._of("suspects")        # list    stored, digit 2 and up: run alone
    @property
    def runs(self) -> str: return self._of("runs")                # zset    run by lease expiry, ms; < 0: being reaped
    @property
    def runs_info(self) -> str: return self._of("runs:info")      # hash    run -> JSON: host, version, start
    @property
    def config(self) -> str: return self._of("config")            # hash    schema version, queue-wide limit
    @property
    def scheduled(self) -> str: return self._of("scheduled")      # zset    stored, by due time in ms
    @property
    def dead(self) -> str: return self._of("dead")                # stream  dead letters
    @property
    def totals(self) -> str: return self._of("totals")            # hash    counters since for ever
    @property
    def totals_push(self) -> str: return self._of("totals:push")  # string  the publisher's lock and its dirty flag
    @property
    def history(self) -> str: return self._of("history")          # stream  one entry a run, the last 1,000
    @property
    def paused(self) -> str: return self._of("paused")            # string  reason; set: nothing is claimed
    @property
    def limit(self) -> str: return self._of("limit")              # hash    state of the queue-wide limit
    # fmt: on

    def processing(self, run: str, n: int) -> str:
        """Return the list (newest left) of what `run` claimed: n = 0 pending, 1 recovered, 2 suspects."""
        return self._of(f"processing:{run}:{n}")

    def own_lists(self, run: str) -> list[str]:
        """Return the three processing lists of `run`, in the order of n."""
        return [self.processing(run, n) for n in range(3)]

    def unique(self, key: str) -> str:
        """Return the string (task id, with a TTL) that holds the deduplication window of `key`."""
        return self._of(f"unique:{_short(key)}")


def limit_state(prefix: str, name: str, sub_key: str) -> str:
    """Return the key of a rate limiter's state; it expires by itself."""
    return f"{prefix}:limit:{{{_short(name)}}}:{_short(sub_key)}"


def queue_names(prefix: str) -> str:
    """Return the set of queue names ever used; another slot, so never in a script and never fatal."""
    return f"{prefix}:queues"


def _short(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    plain = len(raw) <= MAX_LIMIT_KEY and not set(text) & set("{}") and not text.startswith("sha256-")
    return text if plain else "sha256-" + hashlib.sha256(raw).hexdigest()
