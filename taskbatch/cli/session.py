"""What is set for every verb: which Redis, which jobs, how to log. One object, made before the arguments are read."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import partial
from typing import TYPE_CHECKING

import click

from taskbatch.cli.console import Console
from taskbatch.cli.secrets import secret
from taskbatch.errors import ConfigError
from taskbatch.keys import Keys
from taskbatch.logs import LogFormat, Redactor, configure
from taskbatch.settings import PushSettings, RedisSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskbatch.connect import Link

DEFAULT_URL = "redis://localhost:6379/0"


@dataclass
class Session:
    """The global options, and what is made from them. `verbose` counts how often it was asked for."""

    redis_url: str | None = None
    redis_user: str | None = None
    redis_ca_file: str | None = None
    redis_cert_file: str | None = None
    redis_key_file: str | None = None
    prefix: str = "taskbatch"
    jobs: tuple[str, ...] = ("jobs",)
    log_format: LogFormat = "auto"
    verbose: int = 0
    quiet: bool = False
    console: Console = field(default_factory=Console)
    redact: Redactor = field(default_factory=Redactor)

    def start_logging(self) -> None:
        """Send log records to stderr from now on."""
        logging.raiseExceptions = False
        configure(
            self.log_format,
            write=self.console.line,
            live=self.console.is_terminal,
            verbose=self.verbose,
            quiet=self.quiet,
            redact=self.redact,
        )

    def keys(self, queue: str) -> Keys:
        """Return the keys of a queue; a name that is not allowed is a usage error."""
        try:
            return Keys(self.prefix, queue)
        except ConfigError as error:
            raise click.UsageError(str(error)) from error

    def redis_settings(self) -> RedisSettings:
        """Return where Redis is, secrets included. Raises UsageError and ConfigError."""
        url = self.redis_url or secret("TASKBATCH_REDIS_URL") or os.environ.get("REDIS_URL") or DEFAULT_URL
        settings = RedisSettings(
            url=url,
            username=self.redis_user or secret("TASKBATCH_REDIS_USER"),
            password=secret("TASKBATCH_REDIS_PASSWORD"),
            ca_file=self.redis_ca_file,
            cert_file=self.redis_cert_file,
            key_file=self.redis_key_file,
        )
        self.redact.learn(*settings.secrets)
        return settings

    def push_settings(self, url: str | None, ca_file: str | None, timeout: float, textfile: str | None) -> PushSettings:
        """Return where metrics go, secrets included. Raises UsageError and ConfigError."""
        url = url or secret("TASKBATCH_PUSHGATEWAY")
        settings = PushSettings(
            url=url,
            username=secret("TASKBATCH_PUSHGATEWAY_USER"),
            password=secret("TASKBATCH_PUSHGATEWAY_PASSWORD"),
            token=secret("TASKBATCH_PUSHGATEWAY_TOKEN"),
            ca_file=ca_file,
            timeout=timeout,
            textfile=textfile,
        )
        self.redact.learn(*settings.secrets)
        return settings

    def learn_secrets(self) -> None:
        """Know what must not be shown, for a verb that needs none of it and bears settings that are wrong."""
        for settings in (self.redis_settings, partial(self.push_settings, None, None, 0.0, None)):
            with suppress(click.UsageError, ConfigError):
                settings()

    @contextmanager
    def redis(self) -> Iterator[RedisSettings]:
        """Give the settings of a Redis one can connect to; an embedded one lives at least as long as this."""
        settings = self.redis_settings()
        if not settings.url.startswith("embedded:"):
            yield settings
            return
        from taskbatch.embedded import directory_of, open_embedded  # noqa: PLC0415 - few commands need it

        with open_embedded(directory_of(settings.url)) as server:
            yield changed(settings, url=server.url, embedded=True)

    @contextmanager
    def link(self) -> Iterator[Link]:
        """Give a connection to Redis. Raises UnreachableError and ConfigError."""
        with self.redis() as settings, connected(settings) as link:
            yield link


@contextmanager
def connected(settings: RedisSettings) -> Iterator[Link]:
    """Give a connection to this Redis. Raises UnreachableError and ConfigError."""
    from taskbatch.connect import Link  # noqa: PLC0415 - redis-py costs 100 ms, and not every verb needs it

    link = Link(settings)
    try:
        link.connect()
        yield link
    finally:
        link.close()
