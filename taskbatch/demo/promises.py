"""What the demo says will happen, held against what has happened. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from taskbatch.demo.load import GREETINGS, LIMITED

if TYPE_CHECKING:
    from collections.abc import Mapping

KILLED = -9
"""Exit code of a process that got SIGKILL, as Python tells it."""

DEAD = (("?", "undecodable"), ("demo.broken", "failed"), ("demo.slow", "failed"))
"""Type and reason of each dead letter there is to be, sorted."""


class Letter(NamedTuple):
    """One dead letter as it is told of; `kind` is "?" for what is no task."""

    kind: str
    reason: str
    error: str


@dataclass(frozen=True)
class End:
    """How it ended. `left`: how many tasks are in each place; `totals`: the counters of the queue."""

    exit_codes: tuple[int, ...]
    totals: Mapping[str, int]
    left: Mapping[str, int]
    letters: tuple[Letter, ...]

    def count(self, outcome: str, kind: str) -> int:
        """Return how many tasks of this type had this outcome."""
        return self.totals.get(f"tasks:{outcome}:{kind}", 0)


class Promise(NamedTuple):
    """Something that was said, and whether it is so."""

    text: str
    kept: bool


def promises(end: End) -> list[Promise]:
    """Return everything that was promised."""
    waiting = sum(end.left.get(place, 0) for place in ("pending", "scheduled"))
    held = sum(end.left.get(place, 0) for place in ("recovered", "suspects", "processing"))
    dead = tuple(sorted((letter.kind, letter.reason) for letter in end.letters))
    return [
        Promise("the first run was killed, the others ended well", end.exit_codes == (KILLED, 0, 0)),
        Promise(
            "what the killed run held came back",
            end.totals.get("runs:crashed", 0) == 1 and end.totals.get("reaped:recovered", 0) > 0,
        ),
        Promise("the killer is done: one crash is nobody's fault yet", end.count("succeeded", "demo.killer") == 1),
        Promise(
            f"all {GREETINGS + 1} good tasks are done, the delayed one too",
            end.count("succeeded", "demo.hello") == GREETINGS + 1,
        ),
        Promise(
            "the flaky one was retried twice and is done",
            (end.count("retried", "demo.flaky"), end.count("succeeded", "demo.flaky")) == (2, 1),
        ),
        Promise(
            f"all {LIMITED} limited calls are done; being denied cost no attempt",
            (end.count("succeeded", "demo.limited"), end.count("retried", "demo.limited")) == (LIMITED, 0)
            and end.totals.get("released:limit", 0) > 0,
        ),
        Promise("dead letters: the broken, the slow and the undecodable one, no other", dead == DEAD),
        Promise(
            "the unknown type is kept for a run that knows it",
            waiting == 1 and end.totals.get("released:unknown", 0) > 0,
        ),
        Promise("nothing else is left, nothing is lost", held == 0),
    ]


def outcome_rows(end: End) -> list[tuple[str, ...]]:
    """Return how often each type had each outcome, as a table: type, then `OUTCOMES`."""
    kinds = sorted({name.split(":", 2)[2] for name in end.totals if name.startswith("tasks:")})
    return [(kind, *(str(end.count(outcome, kind)) for outcome in OUTCOMES)) for kind in kinds]


OUTCOMES = ("succeeded", "retried", "released", "dead")
