"""The demo checks itself: it must notice when something is not as it was told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taskbatch.demo.promises import End, Letter, outcome_rows, promises

AS_TOLD = End(
    exit_codes=(-9, 0, 0),
    totals={
        "runs:crashed": 1,
        "reaped:recovered": 2,
        "released:limit": 4,
        "released:unknown": 2,
        "tasks:succeeded:demo.hello": 21,
        "tasks:succeeded:demo.flaky": 1,
        "tasks:retried:demo.flaky": 2,
        "tasks:succeeded:demo.limited": 6,
        "tasks:succeeded:demo.killer": 1,
    },
    left={"pending": 0, "recovered": 0, "suspects": 0, "processing": 0, "scheduled": 1, "dead": 3},
    letters=(
        Letter("?", "undecodable", "not a task"),
        Letter("demo.slow", "failed", "timed out"),
        Letter("demo.broken", "failed", "no such customer"),
    ),
)


def broken(end: End) -> list[str]:
    return [promise.text for promise in promises(end) if not promise.kept]


def test_a_demo_that_went_as_told_keeps_every_promise() -> None:
    assert broken(AS_TOLD) == []


def test_the_unknown_task_may_have_fallen_due_at_the_last_moment() -> None:
    assert broken(replace(AS_TOLD, left={**AS_TOLD.left, "scheduled": 0, "pending": 1})) == []


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        ({"exit_codes": (0, 0, 0)}, "the first run was killed, the others ended well"),
        ({"exit_codes": (-9, 0, 75)}, "the first run was killed, the others ended well"),
        ({"totals": {**AS_TOLD.totals, "runs:crashed": 0}}, "what the killed run held came back"),
        (
            {"totals": {**AS_TOLD.totals, "tasks:succeeded:demo.killer": 0}},
            "the killer is done: one crash is nobody's fault yet",
        ),
        (
            {"totals": {**AS_TOLD.totals, "tasks:succeeded:demo.hello": 20}},
            "all 21 good tasks are done, the delayed one too",
        ),
        (
            {"totals": {**AS_TOLD.totals, "tasks:succeeded:demo.hello": 22}},
            "all 21 good tasks are done, the delayed one too",
        ),
        (
            {"totals": {**AS_TOLD.totals, "tasks:retried:demo.flaky": 3}},
            "the flaky one was retried twice and is done",
        ),
        (
            {"totals": {**AS_TOLD.totals, "released:limit": 0}},
            "all 6 limited calls are done; being denied cost no attempt",
        ),
        (
            {"letters": AS_TOLD.letters[:2]},
            "dead letters: the broken, the slow and the undecodable one, no other",
        ),
        (
            {"letters": (*AS_TOLD.letters, Letter("demo.hello", "failed", ""))},
            "dead letters: the broken, the slow and the undecodable one, no other",
        ),
        ({"left": {**AS_TOLD.left, "scheduled": 2}}, "the unknown type is kept for a run that knows it"),
        ({"left": {**AS_TOLD.left, "processing": 1}}, "nothing else is left, nothing is lost"),
    ],
)
def test_what_is_not_as_told_is_noticed(change: dict[str, object], noticed: str) -> None:
    end = replace(AS_TOLD, **change)  # type: ignore[arg-type]

    assert broken(end) == [noticed]


def test_the_table_has_a_row_for_each_type() -> None:
    end = replace(AS_TOLD, totals={"tasks:succeeded:b": 2, "tasks:dead:a": 1, "duration:0.1:b": 2})

    assert outcome_rows(end) == [("a", "0", "0", "0", "1"), ("b", "2", "0", "0", "0")]
