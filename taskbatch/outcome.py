"""What an invocation of a job leads to. Plain values: deciding makes them, settling writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ReleaseReason = Literal["limit", "shutdown", "unknown", "no_time"]
DeadReason = Literal["failed", "crashed", "expired", "undecodable", "unroutable", "interrupted", "oversize"]


@dataclass(frozen=True, slots=True)
class Ack:
    """The job returned: the task is done."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt failed; try again `after` seconds."""

    after: float
    error: str


@dataclass(frozen=True, slots=True)
class Release:
    """Give the task back without counting an attempt; `after` seconds, 0 = at once, to the front of its list."""

    after: float
    reason: ReleaseReason
    counted: Literal["", "interruptions", "unroutable"] = ""


@dataclass(frozen=True, slots=True)
class Dead:
    """Keep the task aside with the reason; nobody runs it until it is redriven."""

    reason: DeadReason
    error: str


Outcome: TypeAlias = Ack | Retry | Release | Dead
