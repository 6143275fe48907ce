"""`kill -9` at each moment that matters: all is done after one lease and one run, and little is done twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from tests.drilling import Drill
    from tests.proxy import Proxy

TASKS = 40


@pytest.mark.parametrize(
    ("name", "nth", "action", "may_run_twice"),
    [
        pytest.param("claim", 1, "hole", 0, id="before the first claim"),
        pytest.param("claim", 1, "swallow", 0, id="claimed, reply not read"),
        pytest.param("claim", 3, "swallow", 6, id="claimed again, reply not read"),
        pytest.param("settle", 1, "hole", 6, id="done, ack not sent"),
        pytest.param("settle", 2, "hole", 6, id="done, a later ack not sent"),
        pytest.param("settle", 2, "swallow", 6, id="ack applied, reply not read"),
        pytest.param("close_run", 1, "hole", 0, id="all done, not closed"),
    ],
)
def test_killed_at(  # noqa: PLR0917 - three fixtures and a row of the table
    batches: Batches, drill: Drill, proxy: Proxy, name: str, nth: int, action: Any, may_run_twice: int
) -> None:
    batches.wait_until_it_reaps()
    # Long enough that a run holds no more than it runs, and two or three ahead.
    batches.push(*(task("nap", f"{i}", payload=b"0.04") for i in range(TASKS)))
    happened = proxy.fail(action, name, nth=nth)
    run = drill.cli.spawn("drain", "-c", "2", "--lease", "3s", env={"TASKBATCH_REDIS_URL": proxy.url})
    assert happened.wait(20)
    run.kill()

    # What is pending can be had at once, what it held after its lease.
    after_lease(batches)
    result = drill("drain", "--lease", "3s")

    assert result.returncode == 0
    starts = drill.starts()
    assert set(starts) == {f"{i}" for i in range(TASKS)}
    assert sum(count - 1 for count in starts.values()) <= may_run_twice
    assert batches.totals()["tasks:succeeded:nap"] == TASKS
    assert batches.totals()["runs:crashed"] == 1
    batches.check_base_line()


def test_killed_in_the_middle_of_tasks(batches: Batches, drill: Drill) -> None:
    batches.wait_until_it_reaps()
    batches.push(*(task("hold", f"{i}", payload=json.dumps(str(drill.gate)).encode()) for i in range(10)))
    run = drill.spawn("drain", "-c", "4", "--lease", "3s")
    drill.wait_for("start 0", "start 1", "start 2", "start 3")
    run.kill()
    drill.open_gate()

    after_lease(batches)
    result = drill("drain", "--lease", "3s")

    assert result.returncode == 0
    assert drill.starts() == {**{f"{i}": 2 for i in range(4)}, **{f"{i}": 1 for i in range(4, 10)}}
    batches.check_base_line()


def after_lease(batches: Batches) -> None:
    """Wait until the leases of all runs are over by the time of Redis."""
    expiries = [expiry for _, expiry in batches.redis.zrange(batches.keys.runs, 0, -1, withscores=True)]
    eventually(lambda: all(batches.now_ms() > expiry for expiry in expiries), "the end of the lease")
