"""What a run reports, and the exit code it ends with."""

from __future__ import annotations

from typing import Any

import pytest

from taskbatch.report import OUTCOMES, Remaining, Report, Tally, exit_code


def tally(**counts: int) -> Tally:
    made = Tally()
    for name, count in counts.items():
        for _ in range(count):
            if name in OUTCOMES:
                made.count("note", name)
            elif name in ("shutdown", "limit"):
                made.count("note", "released")
                made.released_by[name] += 1
            else:
                setattr(made, name, getattr(made, name) + 1)
    made.claimed = sum(made.outcomes.values())
    return made


FINE = ("empty", "max_tasks", "max_runtime", "paused", "overlap", "signal")


@pytest.mark.parametrize("stop", FINE)
@pytest.mark.parametrize("fail_on", ["never", "dead", "failed"])
def test_a_run_without_trouble_is_0(stop: str, fail_on: str) -> None:
    counts = tally(succeeded=3, expired=2, limit=2)

    assert code(counts, stop, fail_on=fail_on) == 0


@pytest.mark.parametrize("stop", ["lease_lost", "redis_lost", "stuck_thread"])
@pytest.mark.parametrize("fail_on", ["never", "failed"])
def test_trouble_of_the_run_is_75_before_anything_else(stop: str, fail_on: str) -> None:
    assert code(tally(dead=1, failed_attempts=1), stop, fail_on=fail_on, pending=5, remaining_exit_code=9) == 75


@pytest.mark.parametrize(
    ("counts", "expected"),
    [({"succeeded": 3}, 0), ({"shutdown": 1}, 75), ({"limit": 1}, 0), ({"lost": 1}, 75), ({"dead": 1}, 1)],
)
def test_a_signal_is_75_if_something_had_to_be_handed_back(counts: dict[str, int], expected: int) -> None:
    assert code(tally(**counts), "signal", fail_on="dead") == expected


@pytest.mark.parametrize(
    ("counts", "never", "dead", "failed"),
    [
        ({"succeeded": 1}, 0, 0, 0),
        ({"retried": 1, "failed_attempts": 1}, 0, 0, 1),
        ({"dead": 1, "failed_attempts": 1}, 0, 1, 1),
        ({"dead": 1}, 0, 1, 1),
        ({"crashed": 1}, 0, 1, 1),
        ({"expired": 1}, 0, 0, 0),
        ({"lost": 1}, 0, 0, 0),
    ],
)
def test_fail_on(counts: dict[str, int], never: int, dead: int, failed: int) -> None:
    codes = [code(tally(**counts), "empty", fail_on=fail_on) for fail_on in ("never", "dead", "failed")]

    assert codes == [never, dead, failed]


@pytest.mark.parametrize(
    ("left", "expected"),
    [({"pending": 1}, 9), ({"recovered": 1}, 9), ({"suspects": 1}, 9), ({"scheduled": 1}, 0), ({"processing": 1}, 0)],
)
def test_what_remains_has_its_exit_code(left: dict[str, int], expected: int) -> None:
    assert code(tally(), "max_tasks", remaining_exit_code=9, **left) == expected


def test_fail_on_goes_before_what_remains() -> None:
    assert code(tally(dead=1), "max_tasks", fail_on="dead", pending=1, remaining_exit_code=9) == 1


def code(counts: Tally, stop: Any, *, fail_on: str = "never", remaining_exit_code: int = 0, **left: int) -> int:
    return exit_code(
        counts, stop, fail_on=fail_on, remaining=Remaining(**left), remaining_exit_code=remaining_exit_code
    )


def test_the_report_as_an_object() -> None:
    counts = tally(succeeded=1, retried=1, shutdown=1, dead=1, expired=1, lost=1, reaped=4)
    counts.seconds = {"note": 1.25}
    report = Report(
        run_id="r1",
        queues=("a", "b"),
        stop_reason="signal",
        started_at=1_700_000_000.5,
        duration=1.23456,
        tally=counts,
        remaining=Remaining(1, 2, 3, 4, 5),
        next_due_at=1_700_000_001.0,
        pushed=None,
        error=None,
        exit_code=75,
    )

    assert report.as_dict() == {
        "schema_version": 1,
        "run_id": "r1",
        "queues": ["a", "b"],
        "stop_reason": "signal",
        "started_at": "2023-11-14T22:13:20.500Z",
        "duration_seconds": 1.235,
        "claimed": 6,
        "succeeded": 1,
        "retried": 1,
        "released": 1,
        "released_by": {"limit": 0, "shutdown": 1, "unknown": 0, "no_time": 0},
        "dead": 1,
        "expired": 1,
        "lost": 1,
        "reaped": 4,
        "by_type": {
            "note": {
                "succeeded": 1,
                "retried": 1,
                "released": 1,
                "dead": 1,
                "expired": 1,
                "lost": 1,
                "seconds": 1.25,
            }
        },
        "remaining": {"pending": 1, "recovered": 2, "suspects": 3, "scheduled": 4, "processing": 5},
        "dead_letters": [],
        "next_due_at": "2023-11-14T22:13:21.000Z",
        "pushed": None,
        "error": None,
        "exit_code": 75,
    }


def test_what_remains_adds_up_over_queues() -> None:
    assert Remaining(1, 2, 3, 4, 5) + Remaining(10, 20, 30, 40, 50) == Remaining(11, 22, 33, 44, 55)


@pytest.mark.parametrize(("counts", "idle"), [({}, True), ({"succeeded": 1}, False), ({"reaped": 1}, False)])
def test_a_run_is_idle_that_neither_claimed_nor_reaped(counts: dict[str, int], idle: bool) -> None:
    assert tally(**counts).idle is idle
