"""From runs by way of a Pushgateway into Prometheus, with the configuration that we ship."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.ending import once, told, with_jobs
from tests.daemon import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.monitoring import Prometheus, Pushgateway
    from tests.program import Cli
    from tests.servers import Server

CONFIG = Path(__file__).parents[2] / "prometheus.yml"


@once
def test_prometheus_knows_what_runs_have_done(
    cli: Cli, server: Server, pushgateway: Pushgateway, prometheus: Callable[[str], Prometheus]
) -> None:
    config = CONFIG.read_text().replace("localhost:9091", pushgateway.url.removeprefix("http://"))
    here = with_jobs(cli, server.url)
    here.env["TASKBATCH_PUSHGATEWAY"] = pushgateway.url
    here("enqueue", "ok", "-", stdin="null\n" * 30)
    here("enqueue", "bad", "-", "-q", "mail", stdin="null\n" * 3)

    first = here("run", "--max-tasks", "10")
    second = here("run", "-q", "default", "-q", "mail")
    monitor = prometheus(config.replace("15s", "200ms"))
    wait_until(lambda: bool(monitor.query("taskbatch_tasks_total")), seconds=30, what="a scrape")

    assert (told(first)["pushed"], told(second)["pushed"]) == (True, True)
    totals = {
        (one["metric"]["queue"], one["metric"]["type"], one["metric"]["outcome"]): float(one["value"][1])
        for one in monitor.query("taskbatch_tasks_total > 0")
    }
    assert totals == {("default", "ok", "succeeded"): 30, ("mail", "bad", "dead"): 3}
    # The labels that were pushed, not those of the scrape.
    assert monitor.value('sum(taskbatch_tasks_total{job="taskbatch"})') == 33
    assert monitor.value('taskbatch_tasks_total{exported_job!=""}') is None
    assert monitor.value('sum(taskbatch_runs_total{queue="default", result="success"})') == 2
    assert monitor.value('taskbatch_queue_tasks{queue="mail", state="dead"}') == 3
    assert monitor.value('taskbatch_task_duration_seconds_count{type="ok"}') == 30
    assert monitor.value("histogram_quantile(0.5, sum by (le) (taskbatch_task_duration_seconds_bucket))") is not None
    assert 0 <= (monitor.value('time() - taskbatch_last_success_timestamp_seconds{queue="default"}') or -1) < 60

    here("enqueue", "ok", "-", stdin="null\n" * 5)
    assert told(here("run"))["pushed"] is True
    wait_until(
        lambda: monitor.value('taskbatch_tasks_total{type="ok", outcome="succeeded"}') == 35,
        seconds=30,
        what="the next scrape",
    )
    assert monitor.value('resets(taskbatch_tasks_total{type="ok", outcome="succeeded"}[5m])') == 0
