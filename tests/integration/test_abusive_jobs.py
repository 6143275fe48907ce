"""Whatever a job does, it fails its own task only, and the run ends and tells the truth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskbatch.task import parse
from tests.batches import Batches, task
from tests.servers import chosen

if TYPE_CHECKING:
    from tests.program import Cli

JOBS = Path(__file__).parents[1] / "abuse.py"

HARMLESS = ("returns", "leaks", "prints", "moves", "hurries", "forks", "spawns", "closes_stdio", "swallows")
FAILING = ("exits", "interrupts", "closes", "hostile", "surrogates", "recurses", "signals", "large")


@pytest.mark.parametrize("server_kind", chosen()[1][:1])  # all of them at once meet the other kind, too
@pytest.mark.parametrize("kind", [*HARMLESS, *FAILING])
def test_it_harms_nobody_else(batches: Batches, cli: Cli, kind: str) -> None:
    good = [task("good", f"{i}") for i in range(20)]
    batches.push(*good[:10], task(kind, "bad"), *good[10:])
    cli.env.update(TASKBATCH_REDIS_URL=batches.server.url, TASKBATCH_JOBS=str(JOBS))

    began = time.monotonic()
    result = cli("run", "--report", "json", "--wait", "0s", "-c", "3")

    report = result.json()  # stdout holds the report, and only that
    assert result.returncode == report["exit_code"] == 0, result.stderr
    assert report["stop_reason"] == "empty"
    assert report["by_type"]["good"]["succeeded"] == 20
    assert report["claimed"] == 21
    if kind in HARMLESS:
        assert report["by_type"][kind]["succeeded"] == 1
        batches.check_base_line()
    else:
        assert report["by_type"][kind]["retried"] == 1
        assert batches.lengths() == {"scheduled": 1}
    assert batches.totals()["claimed"] == 21
    assert time.monotonic() - began < 6.0


def test_all_of_them_at_once(batches: Batches, cli: Cli) -> None:
    kinds = [*HARMLESS, *FAILING]
    for i, kind in enumerate(kinds):
        batches.push(task("good", f"{i}"), task(kind, kind))
    cli.env.update(TASKBATCH_REDIS_URL=batches.server.url, TASKBATCH_JOBS=str(JOBS))

    result = cli("drain", "--report", "json", "-c", "4")

    report = result.json()
    assert (result.returncode, report["stop_reason"]) == (0, "empty"), result.stderr
    assert report["by_type"]["good"]["succeeded"] == len(kinds)
    assert report["claimed"] == report["succeeded"] + report["retried"] == 2 * len(kinds)


def test_an_error_that_cannot_be_shown_still_is_told(batches: Batches, cli: Cli) -> None:
    batches.push(task("hostile"), task("large"), task("surrogates"))
    cli.env.update(TASKBATCH_REDIS_URL=batches.server.url, TASKBATCH_JOBS=str(JOBS))

    result = cli("run", "--wait", "0s")

    errors = []
    for entry, _ in batches.scheduled():
        again = parse(entry[1:])
        assert again is not None
        errors.append(again.last_error)
        assert len(again.last_error.encode()) <= 4096
    assert len(errors) == 3
    assert any("HostileError" in error for error in errors)
    assert "\x1b" not in "".join(errors) + result.stderr
    assert "Traceback" not in result.stdout
