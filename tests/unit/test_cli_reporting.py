"""A report as text, as JSON and as a job summary."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from taskbatch.cli.reporting import as_markdown, as_text, publish_report
from taskbatch.cli.streams import Stream
from taskbatch.logs import Redactor
from taskbatch.report import Remaining, Report, Tally

if TYPE_CHECKING:
    from pathlib import Path


def make_report(tally: Tally, *, exit_code: int = 0, error: str | None = None) -> Report:
    return Report(
        run_id="r1",
        queues=("mail",),
        stop_reason="empty",
        started_at=0.0,
        duration=4.25,
        tally=tally,
        remaining=Remaining(pending=3, scheduled=1),
        next_due_at=None,
        pushed=None,
        error=error,
        exit_code=exit_code,
    )


@pytest.fixture
def tally() -> Tally:
    tally = Tally(claimed=3, reaped=1)
    tally.count("email.send", "succeeded")
    tally.count("email.send", "succeeded")
    tally.count("bad", "dead")
    tally.dead_letters.append(
        {"queue": "mail", "id": "t1", "type": "bad", "reason": "failed", "error": "x\n::error::`|<b>hush"}
    )
    return tally


def published(report: Report, form: str) -> str:
    read, write = os.pipe()
    redact = Redactor()
    redact.learn("hush")
    publish_report(report, form, Stream(write), redact)
    os.close(write)
    with os.fdopen(read) as file:
        return file.read()


def test_text_says_how_it_ended_and_what_is_left(tally: Tally) -> None:
    assert as_text(make_report(tally, exit_code=1)).splitlines() == [
        "run r1 on mail: empty (nothing left to claim) after 4.2s, exit code 1",
        "  claimed 3: 2 succeeded, 1 dead",
        "  reaped 1 task of crashed runs",
        "  type        succeeded  retried  released  dead  expired  lost",
        "  bad                 0        0         0     1        0     0",
        "  email.send          2        0         0     0        0     0",
        "  left: 3 pending, 1 scheduled",
        "  dead: t1 (bad) failed: x\\n::error::`|<b>hush",
    ]


def test_json_is_one_object_without_secrets(tally: Tally) -> None:
    text = published(make_report(tally, exit_code=69, error="cannot reach hush"), "json")
    report = json.loads(text)
    assert text.count("\n") == 1
    assert (report["succeeded"], report["error"], report["exit_code"]) == (2, "cannot reach ***", 69)
    assert report["dead_letters"][0]["error"] == "x\n::error::`|<b>***"


def test_quiet_prints_only_what_did_not_go_well(tally: Tally) -> None:
    assert published(make_report(tally), "quiet") == ""
    assert published(make_report(tally, exit_code=1), "quiet").startswith("run r1 on mail")
    assert published(make_report(tally, exit_code=1), "none") == ""


def test_nothing_breaks_out_of_a_job_summary(tally: Tally) -> None:
    row = next(line for line in as_markdown(make_report(tally)).splitlines() if "t1" in line)
    assert row == "| `t1` | `bad` | `failed` | `x\\n::error::'\\|<b>hush` |"


def test_a_job_summary_goes_to_its_file(tally: Tally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert published(make_report(tally), "github") == ""
    assert summary.read_text().startswith("### ✅ taskbatch: `mail`")

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "not" / "there"))
    assert published(make_report(tally), "github").startswith("### ✅")
