"""What a person can set, read once at start. All times are seconds; None means without bound."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

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


_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")


def redact(url: str) -> str:
    """Return `url` without user and password, safe to print."""
    shown = _CREDENTIALS.sub("***@", url)
    return re.sub(r"([?&](?:password|username|token)=)[^&]*", r"\1***", shown)
