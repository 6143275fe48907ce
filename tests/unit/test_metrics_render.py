"""The text, and what Prometheus' own tool says about it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from taskbatch.metrics.names import FAMILIES
from taskbatch.metrics.render import render
from taskbatch.metrics.snapshot import Snapshot

FULL = Snapshot(
    queue="mail",
    totals={
        "claimed": 12,
        "tasks:succeeded:email.send": 10,
        'tasks:dead:we"ird\\ty\npe': 1,
        "duration:0.5:email.send": 10,
        "duration_sum_us:email.send": 3_250_000,
        "latency:1": 12,
        "latency_sum_ms": 9000,
        "reaped:recovered": 1,
        "runs:success": 2,
        "last_run_ms": 1_764_600_000_123,
        "last_success_ms": 1_764_600_000_123,
        "last_run_duration_us": 2_000_000,
    },
    states={"pending": 3},
    paused=False,
    oldest_pending_ms=1_764_600_000_000,
    version="1.2.3",
)
EMPTY = Snapshot("other", {}, {}, paused=True, oldest_pending_ms=None, version="1.2.3")


def promtool(text: bytes) -> tuple[int, str]:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=30)
    return done.returncode, (done.stdout + done.stderr).decode()


def test_promtool_finds_nothing_to_complain_about() -> None:
    assert promtool(render([FULL, EMPTY])) == (0, "")
    assert promtool(render([EMPTY])) == (0, "")


def test_every_family_is_rendered_with_its_type_and_help() -> None:
    lines = render([FULL]).decode().splitlines()

    heads = [line for line in lines if line.startswith("#")]
    assert heads == [
        head
        for family in FAMILIES
        for head in (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
    ]


def test_the_series_read_as_documented() -> None:
    lines = render([FULL]).decode().splitlines()

    assert 'taskbatch_claimed_total{queue="mail"} 12.0' in lines
    assert 'taskbatch_tasks_total{outcome="succeeded",queue="mail",type="email.send"} 10.0' in lines
    assert 'taskbatch_task_duration_seconds_bucket{le="0.5",queue="mail",type="email.send"} 10.0' in lines
    assert 'taskbatch_task_duration_seconds_bucket{le="0.25",queue="mail",type="email.send"} 0.0' in lines
    assert 'taskbatch_task_duration_seconds_count{queue="mail",type="email.send"} 10.0' in lines
    assert 'taskbatch_task_duration_seconds_sum{queue="mail",type="email.send"} 3.25' in lines
    assert 'taskbatch_last_run_timestamp_seconds{queue="mail"} 1.764600000123e+09' in lines
    assert 'taskbatch_build_info{queue="mail",version="1.2.3"} 1.0' in lines


def test_a_strange_type_stays_on_its_line() -> None:
    text = render([FULL]).decode()

    assert r'taskbatch_tasks_total{outcome="dead",queue="mail",type="we\"ird\\ty\npe"} 1.0' in text.splitlines()


def test_nothing_is_added_to_what_was_read() -> None:
    text = render([FULL, EMPTY]).decode()

    assert "_created" not in text
    assert set(re.findall(r"^([a-z]+)_", text, re.MULTILINE)) == {"taskbatch"}


def test_several_queues_share_a_family() -> None:
    text = render([FULL, EMPTY]).decode()

    assert text.count("# TYPE taskbatch_queue_paused gauge") == 1
    assert 'taskbatch_queue_paused{queue="mail"} 0.0' in text
    assert 'taskbatch_queue_paused{queue="other"} 1.0' in text


def test_publishing_alone_does_not_pay_for_prometheus_client() -> None:
    code = (
        "import sys, taskbatch.metrics.publish, taskbatch.metrics.push, taskbatch.metrics.textfile\n"
        "import taskbatch.metrics.names, taskbatch.metrics.projection, taskbatch.metrics.target\n"
        "sys.exit('prometheus_client' in sys.modules or 'redis' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
