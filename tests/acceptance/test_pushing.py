"""Twenty runs at once push to a real gateway: no counter ever goes back, and the last value is the truth."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import pytest

from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from tests.drilling import Drill
    from tests.monitoring import Pushgateway

RUNS = 20
SAMPLE = re.compile(r"^(taskbatch_\w+(?:_total|_count|_sum|_bucket))(\{[^}]*\}) (\S+)$", re.MULTILINE)


def counters(text: str) -> dict[str, float]:
    return {name + labels: float(value) for name, labels, value in SAMPLE.findall(text)}


class Scraper(threading.Thread):
    """Reads the gateway every 20 ms and notes every counter that decreased or disappeared."""

    def __init__(self, gateway: Pushgateway) -> None:
        super().__init__()
        self._gateway = gateway
        self.over = threading.Event()
        self.went_back: list[str] = []
        self.scrapes = 0

    def run(self) -> None:
        before: dict[str, float] = {}
        while not self.over.wait(0.02):
            now = counters(self._gateway.metrics())
            self.went_back += [name for name, value in before.items() if now.get(name, -1.0) < value]
            before = now
            self.scrapes += 1


@pytest.mark.slow
def test_twenty_runs_push_at_once(batches: Batches, drill: Drill, pushgateway: Pushgateway) -> None:
    scraper = Scraper(pushgateway)
    scraper.start()
    try:
        runs = [
            drill.spawn("run", "-n", "10", "-c", "2", "--wait", "10s", "--pushgateway", pushgateway.url)
            for _ in range(RUNS)
        ]
        eventually(lambda: batches.redis.zcard(batches.keys.runs) == RUNS, "all runs", seconds=60)
        batches.push(*(task("count", f"{i}", enqueued_at_ms=batches.now_ms()) for i in range(10 * RUNS)))
        results = [run.wait(60) for run in runs]
    finally:
        scraper.over.set()
        scraper.join()

    assert [result.returncode for result in results] == [0] * RUNS
    assert all(result.json()["pushed"] for result in results)
    assert scraper.scrapes > 20
    assert scraper.went_back == []
    assert len(pushgateway.groups()) == 1
    last = {name.split("{")[0]: value for name, value in counters(pushgateway.metrics()).items() if "le=" not in name}
    totals = batches.totals()
    assert totals["tasks:succeeded:count"] == 10 * RUNS
    text = pushgateway.metrics()
    assert re.search(r'taskbatch_tasks_total\{[^}]*outcome="succeeded"[^}]*type="count"[^}]*\} 200\n', text)
    assert re.search(r'taskbatch_runs_total\{[^}]*result="success"[^}]*\} 20\n', text)
    assert last["taskbatch_claimed_total"] == totals["claimed"]
    assert last["taskbatch_task_duration_seconds_count"] == 200
