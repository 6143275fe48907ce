"""A rate limit holds over all runs, holds nobody else up, and costs nobody an attempt."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from tests.drilling import Drill
    from tests.program import Background

RUNS = 4


def waiting_runs(batches: Batches, drill: Drill) -> list[Background]:
    runs = [drill.spawn("drain", "-c", "4", "--wait", "2s", "--wait-due", "20s") for _ in range(RUNS)]
    eventually(lambda: batches.redis.zcard(batches.keys.runs) == RUNS, "all runs", seconds=60)
    return runs


def times(drill: Drill, kind: str) -> list[int]:
    """Return when each task of a kind was started, in ms of the server's time."""
    return sorted(int(line.split()[2]) for line in drill.lines() if line.startswith(f"{kind} "))


def check_books(batches: Batches, drill: Drill, runs: list[Background], kind: str, count: int, *, most: int) -> None:
    """Each once, no attempt burnt, `most` claims, and every report adds up."""
    reports = [run.wait(60).json() for run in runs]
    names = [line.split()[1] for line in drill.lines()]
    assert len(names) == len(set(names))
    assert sum(report["retried"] + report["dead"] + report["lost"] for report in reports) == 0
    assert all(report["exit_code"] == 0 for report in reports)
    claimed = sum(
        report["by_type"].get(kind, {}).get(outcome, 0) for report in reports for outcome in ("succeeded", "released")
    )
    assert claimed <= most
    totals = batches.totals()
    assert totals[f"tasks:succeeded:{kind}"] == count
    assert f"failed:{kind}" not in totals
    assert batches.lengths() == {}


@pytest.mark.slow
def test_fifty_a_second_over_four_runs(batches: Batches, drill: Drill) -> None:
    runs = waiting_runs(batches, drill)
    mixed = [task(kind, f"{kind[0]}{i}") for i in range(400) for kind in ("limited", "free")]
    # At the beginning of a second: a task is noted a moment after its permit was granted.
    eventually(lambda: batches.now_ms() % 1000 < 50, "a new second")
    began = batches.now_ms()

    batches.push(*mixed)
    eventually(lambda: len(times(drill, "limited")) == 400, "all of them", seconds=30)

    free, limited = times(drill, "free"), times(drill, "limited")
    windows = Counter(at // 1000 for at in limited)
    assert max(windows.values()) <= 50, windows
    assert len(windows) <= 10, windows  # and the limit is used: eight would be perfect
    assert len(free) == 400
    assert free[-1] - began < 2500, "free tasks were held up"
    check_books(batches, drill, runs, "limited", 400, most=800)


@pytest.mark.slow
def test_a_smooth_limit_over_four_runs(batches: Batches, drill: Drill) -> None:
    runs = waiting_runs(batches, drill)

    began = time.monotonic()
    batches.push(*(task("smooth", f"s{i}") for i in range(150)))
    eventually(lambda: len(times(drill, "smooth")) == 150, "all of them", seconds=30)
    took = time.monotonic() - began

    at = times(drill, "smooth")
    # 5 at once, then one every 20 ms; what is noted may come some ms after its permit.
    for first in range(len(at)):
        for last in range(first, len(at)):
            allowed = 5 + (at[last] - at[first] + 150) / 20
            assert last - first + 1 <= allowed, (first, last, at[last] - at[first])
    assert 2.7 < took < 8.0
    # Here a run that comes some ms late meets more booked tasks than permits, and books the rest anew.
    check_books(batches, drill, runs, "smooth", 150, most=450)
