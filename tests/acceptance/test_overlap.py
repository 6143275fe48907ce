"""Twenty drains at once on twenty thousand tasks: each task is started exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from tests.drilling import Drill

RUNS = 20
TASKS = 20_000


@pytest.mark.slow
def test_twenty_drains_of_twenty_thousand_tasks(batches: Batches, drill: Drill) -> None:
    drains = [drill.spawn("drain", "-c", "2", "--wait", "10s") for _ in range(RUNS)]
    eventually(lambda: batches.redis.zcard(batches.keys.runs) == RUNS, "all runs", seconds=150)

    for start in range(0, TASKS, 1000):
        batches.push(*(task("count", f"{start + i}") for i in range(1000)))
    # Once nothing is left, what they wait for is not new work.
    eventually(lambda: len(drill.lines()) >= TASKS and not batches.lengths(), "the end", seconds=150)
    results = [drain.wait(60) for drain in drains]

    starts = drill.starts()
    assert len(starts) == TASKS
    assert set(starts.values()) == {1}
    assert [result.returncode for result in results] == [0] * RUNS
    reports = [result.json() for result in results]
    # On a machine that is too busy to start within a second what was claimed ahead, that goes back and is claimed anew.
    released = sum(report["released_by"]["no_time"] for report in reports)
    assert sum(report["claimed"] for report in reports) == TASKS + released
    assert sum(report["succeeded"] for report in reports) == TASKS
    assert sum(report["claimed"] > 0 for report in reports) > RUNS / 2  # they do share
    totals = batches.totals()
    assert (totals["claimed"], totals["tasks:succeeded:count"]) == (TASKS + released, TASKS)
    assert totals["runs:success"] == RUNS
    batches.check_base_line()
