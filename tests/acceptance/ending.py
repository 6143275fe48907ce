"""How a run of the program ended, and what it left in Redis: for tests that read exit code, report and stderr."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers import chosen

if TYPE_CHECKING:
    from tests.program import Cli, Result

PARTS = ("succeeded", "retried", "released", "dead", "expired", "lost")
FIELDS = {
    *("schema_version", "run_id", "queues", "stop_reason", "started_at", "duration_seconds", "claimed", *PARTS),
    *("released_by", "reaped", "by_type", "remaining", "dead_letters", "next_due_at", "pushed", "error", "exit_code"),
}
"""What `--report json` prints, always."""

PENDING = "taskbatch:{default}:pending"

ERROR = "taskbatch: error: "

JOBS = """
import os, time
from pathlib import Path
from taskbatch import job

@job("ok")
def ok(): pass

@job("bad", max_attempts=1)
def bad(): raise ValueError("no good")

@job("again", max_attempts=5)
def again(): raise ValueError("not yet")

@job("hold", timeout=60)
def hold(gate: str):
    Path("held").touch()
    while not Path(gate).exists():
        time.sleep(0.01)

@job("nap", timeout=10)
def nap(seconds: float):
    time.sleep(seconds)

@job("stuck", timeout=0.2)
def stuck():
    time.sleep(60)
"""
"""A file jobs.py; `hold` makes the file `held` and goes on until the file that is its payload is there."""


once = pytest.mark.parametrize("server_kind", chosen()[1][:1])
"""For a test whose server does not matter: it runs with the first kind only."""


def problem(result: Result) -> str:
    """Return the one line that says what went wrong; beside it stderr holds no traceback."""
    lines = [line.removeprefix(ERROR) for line in result.stderr.splitlines() if line.startswith(ERROR)]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert "\n  File " not in result.stderr
    return lines[0]


def only_problem(result: Result) -> str:
    """Return what `problem` does; stderr holds that line and nothing else."""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return problem(result)


def told(result: Result) -> dict[str, Any]:
    """Return the JSON report after checking what holds for every one of them."""
    report: dict[str, Any] = json.loads(result.stdout)
    assert set(report) == FIELDS
    assert report["exit_code"] == result.returncode
    assert report["claimed"] == sum(report[part] for part in PARTS)
    return report


def failed_with(result: Result, code: int) -> str:
    """Return the error of a run that claimed nothing: `code`, a report that says the same, one line on stderr."""
    assert result.returncode == code, result.stdout + result.stderr
    report = told(result)
    assert (report["stop_reason"], report["claimed"], report["remaining"]) == ("error", 0, None)
    line = problem(result)
    assert report["error"] == line
    return line


def with_jobs(cli: Cli, url: str) -> Cli:
    """Give the program the file of `JOBS`, the address of a server, and a report in JSON."""
    (cli.cwd / "jobs.py").write_text(JOBS)
    cli.env.update(TASKBATCH_REDIS_URL=url, TASKBATCH_REPORT="json", TASKBATCH_WAIT="0s")
    return cli
