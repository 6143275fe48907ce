"""What a person can set, read once at start. All times are seconds; None means without bound."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from taskbatch.errors import ConfigError

MIN_LEASE = 3.0
MAX_THREADS = 1000
MAX_EXIT_CODE = 255
CLAIM_AHEAD_SECONDS = 0.05
CLAIM_AHEAD_MAX = 1000
UNSTARTED_MAX_SECONDS = 1.0
CHUNK_BYTES = 256 * 1024
CHUNK_TASKS = 1000

FailOn = Literal["never", "dead", "failed"]


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Where Redis is. Secrets are kept out of `repr`, so that they cannot reach a log by accident.

    `embedded`: the server lives only while commands use it, so its start cuts no run off from its lease.
    """

    url: str = field(default="redis://localhost:6379/0", repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: float = 5.0
    embedded: bool = False

    @property
    def secrets(self) -> list[str]:
        """What must never be shown."""
        return [*secrets_in(self.url), self.password or ""]


@dataclass(frozen=True, slots=True)
class PushSettings:
    """Where metrics go; nothing is pushed without a URL and nothing written without a path."""

    url: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    timeout: float = 5.0
    textfile: str | None = None

    @property
    def secrets(self) -> list[str]:
        """What must never be shown, as it was given and as it goes over the wire."""
        login = f"{self.username}:{self.password}" if self.password else unquote(_login_in(self.url or ""))
        sent = base64.b64encode(login.encode("utf-8", "surrogateescape")).decode()
        return [*secrets_in(self.url or ""), self.password or "", self.token or "", sent]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """One run. Raises ConfigError for combinations that cannot work."""

    queues: tuple[str, ...] = ("default",)
    prefix: str = "taskbatch"
    max_tasks: int | None = 100
    concurrency: int = 8
    wait: float = 1.0
    wait_due: float = 0.0
    max_runtime: float | None = 300.0
    lease: float = 60.0
    grace: float = 20.0
    max_concurrent_runs: int = 0
    fail_on: FailOn = "never"
    remaining_exit_code: int = 0

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ConfigError(problem)

    def _problems(self) -> list[str]:
        checks = [
            (not self.queues, "at least one queue is needed"),
            (len(set(self.queues)) != len(self.queues), "a queue is named twice"),
            (self.max_tasks is not None and self.max_tasks < 1, "--max-tasks must be at least 1"),
            (not 1 <= self.concurrency <= MAX_THREADS, f"--concurrency must be from 1 to {MAX_THREADS}"),
            (self.lease < MIN_LEASE, f"--lease must be at least {MIN_LEASE:g}s, to survive a short pause"),
            (self.max_runtime is not None and self.max_runtime <= 0, "--max-runtime must be more than 0"),
            (min(self.wait, self.wait_due, self.grace) < 0, "durations must not be negative"),
            (self.max_concurrent_runs < 0, "--max-concurrent-runs must not be negative"),
            (
                not 0 <= self.remaining_exit_code <= MAX_EXIT_CODE,
                f"--remaining-exit-code must be from 0 to {MAX_EXIT_CODE}",
            ),
            (
                self.max_runtime is not None and self.wait > self.max_runtime,
                "--wait is longer than --max-runtime",
            ),
        ]
        return [text for wrong, text in checks if wrong]


_PLAIN = re.compile(
    r"(?P<scheme>[^:/?#@]+://)(?P<login>[^/?#@]*@)?"
    r"(?P<place>(?:\[[^]/?#@]*\]|[^][:/?#@]*)(?::[0-9]*)?(?:/[^?#@]*)?)(?P<query>\?[^#@]*)?"
)
_SECRET = re.compile(r"([?&][^=&]*(?:pass|secret|token)[^=&]*=)([^&]*)", re.IGNORECASE)


def is_plain(url: str) -> bool:
    """Return whether nobody can mistake where in `url` a password begins and ends."""
    return _PLAIN.fullmatch(url) is not None


def redact(url: str) -> str:
    """Return `url` without user and password, safe to print; of one that is not plain no more than the scheme."""
    plain = _PLAIN.fullmatch(url)
    if plain is None:
        scheme, separator, _ = url.partition("://")
        return f"{scheme}://***" if separator and "@" not in scheme else "***"
    login = "***@" if plain["login"] else ""
    return plain["scheme"] + login + plain["place"] + _SECRET.sub(r"\1***", plain["query"] or "")


def secrets_in(url: str) -> list[str]:
    """Return what in a URL is secret, as it stands there and decoded; also in one that cannot be read."""
    found = [_login_in(url).partition(":")[2], *(match[2] for match in _SECRET.finditer(url))]
    return [form for one in found if one for form in (one, unquote(one))]


def _login_in(url: str) -> str:
    # Up to the last @: a password may hold any character that should have been percent-encoded.
    return url.partition("://")[2].rpartition("@")[0]
