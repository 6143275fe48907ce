"""The queue-wide limit: as people write it (`50/1s`), as it is stored (`50 1000`: count and period in ms)."""

from __future__ import annotations

import click

from taskbatch.cli.text import duration
from taskbatch.errors import ConfigError
from taskbatch.logs import escape
from taskbatch.ratelimit import RateLimit


def stored_limit(rate: str) -> str:
    """Return what is stored for `50/1s`; "" for `none`. Raises UsageError."""
    if rate == "none":
        return ""
    try:
        limit = RateLimit(rate)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    return f"{limit.limit} {round(limit.period * 1000)}"


def shown_limit(stored: str) -> str:
    """Return what people write for what is stored; something foreign is shown as it is."""
    count, _, period = stored.partition(" ")
    if not (count.isdigit() and period.isdigit()):
        return f"unreadable: {escape(stored)[:40]}"
    return f"{count}/{duration(int(period) / 1000).replace(' ', '')}"
