"""What holds after every step, whatever was done. None of this asks the model; all of it reads the database."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from taskbatch.policy import MAX_INTERRUPTIONS, MAX_UNROUTABLE
from taskbatch.task import parse
from tests.lua.keyspace import raw
from tests.model.model import LIVE
from tests.model.tasks import MAX_ATTEMPTS, Ledger, token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.look import View

OURS = re.compile(
    r"pending|recovered|suspects|scheduled|dead|runs|runs:info|config|totals|history|paused|limit"
    r"|processing:r\d+:[012]|unique:[a-z]"
)
DIGITS = {"recovered": "1", "suspects": "23", "scheduled": "0123", "1": "1", "2": "23"}
"""The crash digits that can be in a place; in a run's own lists by the list's number."""


class Step(NamedTuple):
    """What was just done: a script's name or what moved time, and the run it was done by or to."""

    what: str = ""
    run: str = ""


def check(before: View, step: Step, after: View, ledger: Ledger) -> None:
    """Check everything below."""
    no_foreign_key(after)
    every_task_is_in_one_place(after, ledger)
    crash_digits_fit_their_place(after)
    attempts_are_bounded(after)
    totals_add_up(after)
    a_suspect_is_alone(after)
    only_a_live_lease_gains(before, step, after)
    only_its_run_takes_from_a_live_lease(before, step, after)
    totals_never_shrink(before, after)


def stored(view: View) -> Iterator[tuple[str, str, str]]:
    """Yield (place, crash digit or '', task) of every task that is somewhere."""
    for name, value in view.items():
        if name in {"pending", "recovered", "suspects", "scheduled"} or name.startswith("processing:"):
            place = name[-1] if name.startswith("processing:") else name
            bare = place in {"pending", "0"}
            for entry in value:
                yield place, "" if bare else entry[:1], entry if bare else entry[1:]
        elif name == "dead":
            for letter in value:
                yield "dead", "", letter.task


def no_foreign_key(view: View) -> None:
    assert [name for name in view if not OURS.fullmatch(name)] == []


def every_task_is_in_one_place(view: View, ledger: Ledger) -> None:
    """I1, I2: accepted = stored somewhere + done + deleted, for each task by itself."""
    somewhere = Counter(token(task) for _, _, task in stored(view))
    assert somewhere + ledger.done + ledger.deleted == ledger.accepted


def crash_digits_fit_their_place(view: View) -> None:
    for place, digit, _ in stored(view):
        assert not digit or digit in DIGITS[place], f"digit {digit} in {place}"


def attempts_are_bounded(view: View) -> None:
    for place, _, task in stored(view):
        parsed = parse(raw(task))
        if parsed is None:
            continue
        # The last time of each is the one that made it a dead letter.
        last = int(place == "dead")
        assert parsed.failures < (parsed.max_attempts or MAX_ATTEMPTS) + last
        assert parsed.interruptions < MAX_INTERRUPTIONS + last
        assert parsed.unroutable < MAX_UNROUTABLE + last


def totals_add_up(view: View) -> None:
    """What was claimed has an outcome, was reaped, or is held; what died is there, was redriven, or was deleted."""
    totals = Counter(view.get("totals", {}))
    outcomes = sum(times for name, times in totals.items() if name.startswith("tasks:"))
    reaped = sum(times for name, times in totals.items() if name.startswith("reaped:"))
    held = sum(len(entries) for name, entries in view.items() if name.startswith("processing:"))
    assert totals["claimed"] == outcomes + reaped + held


def totals_never_shrink(before: View, after: View) -> None:
    now = after.get("totals", {})
    assert [name for name, times in before.get("totals", {}).items() if now.get(name, 0) < times] == []


def a_suspect_is_alone(view: View) -> None:
    for run in {name.split(":")[1] for name in view if name.startswith("processing:")}:
        if suspects := view.get(f"processing:{run}:2"):
            assert len(suspects) == 1
            assert f"processing:{run}:0" not in view
            assert f"processing:{run}:1" not in view


def only_a_live_lease_gains(before: View, step: Step, after: View) -> None:
    for name, entries in after.items():
        if not name.startswith("processing:"):
            continue
        run = name.split(":")[1]
        if Counter(entries) - Counter(before.get(name, [])):
            assert before["runs"].get(run) == LIVE, f"{run} got something without a lease"
            assert step in {Step("claim", run), Step("claim_suspect", run)}


def only_its_run_takes_from_a_live_lease(before: View, step: Step, after: View) -> None:
    """I6: what a run with a good lease holds, nobody but its own settle takes."""
    for name, entries in before.items():
        if not name.startswith("processing:"):
            continue
        run = name.split(":")[1]
        if Counter(entries) - Counter(after.get(name, [])) and before.get("runs", {}).get(run) == LIVE:
            assert step == Step("settle", run)
