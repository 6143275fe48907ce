"""What a run uses does not depend on what there is to do: memory, threads, descriptors, and keys in Redis.

`TASKBATCH_TEST_BACKLOG=1000000` makes the large backlog a million tasks; by default it is smaller, to save time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taskbatch import job
from taskbatch.connect import Link
from taskbatch.letters import Letters
from taskbatch.scripts import Scripts
from taskbatch.settings import RedisSettings
from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from tests.servers import Server

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("hordes.py")
SMALL = 20_000
LARGE = int(os.environ.get("TASKBATCH_TEST_BACKLOG", "200000"))
FAILING = 50_000
RUNS = 500
SEED = 20260101
MB = 1024


@pytest.fixture
def server_kind() -> str:
    """Memory is ours, not the server's: one kind will do."""
    return "redis"


@dataclass(frozen=True)
class Horde:
    """What a program said."""

    said: dict[str, Any]

    @property
    def peak(self) -> int:
        """The most memory it ever had, in kB."""
        return int(self.said["peak"])

    @property
    def samples(self) -> list[tuple[int, int, int]]:
        return [(one[0], one[1], one[2]) for one in self.said["samples"]]


def start(*arguments: str) -> Horde:
    """Run one of the programs and wait for its end."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        capture_output=True,
        cwd=root,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return Horde(json.loads(done.stdout))


def fill(batches: Batches, kind: str, count: int) -> None:
    """Put tasks into pending, in chunks that do not take long to send."""
    for start in range(0, count, 5_000):
        batches.push(*(task(kind, f"{i}") for i in range(start, min(start + 5_000, count))))


@pytest.fixture
def batches(server: Server) -> Batches:
    return Batches(server)


def test_a_backlog_ten_times_as_long_takes_no_more_memory(batches: Batches) -> None:
    fill(batches, "nothing", SMALL)
    small = start("drain", batches.server.url, f"{SMALL // 10}")

    fill(batches, "nothing", LARGE)
    large = start("drain", batches.server.url, f"{LARGE // 10}")

    assert small.said["report"]["succeeded"] == SMALL
    assert large.said["report"]["succeeded"] == LARGE
    assert large.peak < small.peak * 1.1, (small.peak, large.peak)
    assert large.peak < 100 * MB, large.peak
    # Nor does it creep up on the way.
    assert large.samples[-1][2] < large.samples[0][2] + 3 * MB, large.samples
    assert {one[:2] for one in large.samples} == {large.samples[0][:2]}
    batches.check_base_line()


def test_a_run_that_takes_a_part_does_not_look_at_the_rest(batches: Batches) -> None:
    fill(batches, "nothing", LARGE)
    redis_before = batches.redis.info("stats")["total_net_output_bytes"]

    report = batches.run(job("nothing")(lambda: None), max_tasks=1_000)

    sent = batches.redis.info("stats")["total_net_output_bytes"] - redis_before
    assert report.tally.outcomes["succeeded"] == 1_000
    assert batches.lengths() == {"pending": LARGE - 1_000}
    assert sent < 500 * 1_000, sent


def test_failures_leave_nothing_behind_in_the_process(batches: Batches) -> None:
    fill(batches, "fail", FAILING)

    horde = start("fail", batches.server.url, f"{FAILING // 10}")

    assert horde.said["report"]["dead"] == FAILING
    assert batches.lengths() == {"dead": FAILING}
    first, last = horde.samples[0], horde.samples[-1]
    assert {one[0] for one in horde.samples} == {first[0]}
    assert first[0] <= 8 + 4
    assert {one[1] for one in horde.samples} == {first[1]}
    # Dead letters in the report are bounded, and so is everything else.
    assert last[2] < first[2] + 3 * MB, horde.samples
    assert horde.peak < 100 * MB


def test_runs_that_are_killed_leave_no_key_behind(batches: Batches) -> None:
    batches.wait_until_it_reaps()
    pushed = RUNS * 60
    fill(batches, "nothing", pushed)

    horde = start("storm", batches.server.url, f"{RUNS}", f"{SEED}")
    # The last ones to be killed hold their leases for a while.
    keys, redis = batches.keys, batches.redis
    eventually(lambda: all(score <= batches.now_ms() for _, score in redis.zrange(keys.runs, 0, -1, withscores=True)))
    nothing = job("nothing")(lambda: None)
    batches.run(nothing, lease=3.0)
    # Whoever was held by four runs that were killed is under suspicion; it is innocent.
    link = Link(RedisSettings(url=batches.server.url))
    Letters(Scripts(link), keys).redrive_all()
    batches.run(nothing, lease=3.0)
    link.close()

    assert (horde.said["ended"], horde.said["killed"]) == (RUNS // 2, RUNS // 2)
    assert batches.totals()["tasks:succeeded:nothing"] == pushed
    batches.check_base_line()
