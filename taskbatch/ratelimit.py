"""How a rate limit is declared: `RateLimit("100/1m", algorithm="gcra")`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from taskbatch.checks import check_name, is_count, refuse
from taskbatch.durations import parse_duration

JITTER = 0.25
"""Seconds of scheduling jitter the default burst of a smooth limit absorbs."""

_RATE = re.compile(r"([0-9]{1,9})/(.+)")


@dataclass(frozen=True)
class RateLimit:
    """At most `limit` starts in every `period` seconds, over all runs on all machines.

    `rate` is `N/duration`: `100/1m`, `50/1s`, `5/500ms`, or with a bare unit `100/m`.

    `algorithm="fixed"` counts in fixed windows; around a boundary up to twice N may start in one period.
    `algorithm="gcra"` spaces starts evenly, and lets `burst` start at once after a pause. By default that is
    1 plus what the rate gives in 0.25 s, so that ordinary scheduling jitter does not cost throughput.

    Jobs that give the same `name` share one limit; without it the limit is the job's own. Each `limit_key`
    of a task (a tenant, an API key) has its own count, unless `per_key` is False.
    """

    rate: str
    algorithm: Literal["fixed", "gcra"] = "fixed"
    burst: int | None = None
    name: str | None = None
    per_key: bool = True
    limit: int = field(init=False)
    period: float = field(init=False)

    def __post_init__(self) -> None:
        limit, period = _parse_rate(self.rate)
        if self.algorithm not in {"fixed", "gcra"}:
            refuse(f"rate limit algorithm is 'fixed' or 'gcra', not {self.algorithm!r}")
        if self.burst is not None:
            if self.algorithm != "gcra":
                refuse("burst needs algorithm='gcra': a fixed window has none")
            if not is_count(self.burst):
                refuse(f"burst is a whole number from 1, not {self.burst!r}")
        if self.name is not None:
            check_name("rate limit name", self.name)
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "period", period)
        if self.algorithm == "gcra" and self.burst is None:
            object.__setattr__(self, "burst", 1 + math.ceil(JITTER * limit / period))


def _parse_rate(rate: object) -> tuple[int, float]:
    match = _RATE.fullmatch(rate.strip()) if isinstance(rate, str) else None
    if match is None:
        refuse(f"rate limit {str(rate)[:60]!r} is not valid: write N/duration, as in 100/1m or 50/s")
    count, text = match.groups()
    try:
        period = parse_duration(text if text[0].isdigit() else f"1{text}")
    except ValueError as error:
        refuse(f"rate limit {str(rate)[:60]!r}: {error}")
    if int(count) < 1 or period < 0.001:  # noqa: PLR2004 - Redis counts in milliseconds
        refuse(f"rate limit {str(rate)[:60]!r} lets nothing through: at least 1 in at least 1ms")
    return int(count), period
