"""What comes from a task can neither end a line, nor move a cursor, nor turn the reading direction around."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.batches import Batches, task

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program import Cli

NASTY = "a\nb\rc\x1b[2J\x1b]0;title\x07\x08\x7f\x85\x9b31m\u2028\u2029\u202eevil\u2066\u200e\u061c\ufeff\u200bz"
MARKDOWN = "`|</td><script>\n## head\n::error::x"

JOBS = f"""
import logging
from taskbatch import job

@job("fail", max_attempts=1)
def fail():
    raise ValueError({NASTY!r})

@job("log")
def log():
    logging.getLogger({NASTY!r}).warning("%s", {NASTY!r}, extra={{"what": {NASTY!r}}})
"""


@pytest.fixture
def hostile(cli: Cli, batches: Batches, tmp_path: Path) -> Batches:
    """A queue in which everything a producer can choose is nasty."""
    (tmp_path / "hostile.py").write_text(JOBS)
    cli.env.update(TASKBATCH_REDIS_URL=batches.server.url, TASKBATCH_JOBS=str(tmp_path / "hostile.py"))
    fields = {
        "content_type": NASTY,
        "limit_key": NASTY[:60],
        "unique_key": NASTY,
        "last_error": NASTY,
        "headers": {NASTY: NASTY},
    }
    batches.push(
        task("fail", NASTY, **fields),
        task("log", NASTY, **fields),
        task(NASTY, NASTY, unroutable=19, **fields),
        task(MARKDOWN, MARKDOWN, unroutable=19),
        NASTY.encode(),
    )
    return batches


def check_lines(text: str) -> None:
    """Every line is printable, and none was begun by a task."""
    for line in text.removesuffix("\n").split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.startswith(("b\r", "## head", "::error"))


@pytest.mark.parametrize("verbose", [[], ["-v", "-v"]])
def test_a_log_line_of_json_stays_one_line(cli: Cli, hostile: Batches, verbose: list[str]) -> None:
    result = cli("run", "--wait", "0s", "--log-format", "json", "--report", "none", *verbose)

    assert result.returncode == 0, result.stderr
    assert result.stderr.isascii()
    entries = [json.loads(line) for line in result.stderr.splitlines()]
    assert {entry["message"] for entry in entries if entry["logger"] == NASTY} == {NASTY}
    assert len([entry for entry in entries if "is dead (" in entry["message"]]) == 4
    assert hostile.lengths() == {"dead": 4}


@pytest.mark.parametrize("verbose", [[], ["-v", "-v"]])
def test_a_log_line_of_text_stays_one_line(cli: Cli, hostile: Batches, verbose: list[str]) -> None:
    result = cli("run", "--wait", "0s", "--log-format", "text", "--report", "none", *verbose)

    assert result.returncode == 0, result.stderr
    check_lines(result.stderr)
    # Each line begins with its time, and what belongs to it is set in.
    assert all(line.startswith(("20", "  ")) for line in result.stderr.splitlines())
    assert len([line for line in result.stderr.splitlines() if "is dead (" in line]) == 4


@pytest.mark.parametrize("report", ["text", "github", "json"])
def test_a_report_is_as_long_as_it_should_be(cli: Cli, hostile: Batches, report: str) -> None:
    result = cli("run", "--wait", "0s", "--report", report)

    check_lines(result.stdout)
    if report == "json":
        assert sorted(letter["id"] for letter in result.json()["dead_letters"]) == sorted([NASTY, NASTY, MARKDOWN, ""])
    if report == "github":
        assert "<script>" not in result.stdout.replace("`'\\|</td><script>\\n## head\\n::error::x`", "")


def test_dead_letters_are_shown_escaped(cli: Cli, hostile: Batches) -> None:
    cli("run", "--wait", "0s")
    entries = [name.decode() for name, _ in hostile.redis.xrange(hostile.keys.dead)]

    listed = cli("dead", "list")
    as_json = cli("dead", "list", "--json")

    check_lines(listed.stdout)
    assert len(listed.stdout.splitlines()) == 1 + 4
    check_lines(as_json.stdout)
    assert NASTY in {letter["task"] for letter in as_json.json()["dead"]}
    for entry in entries:
        check_lines(cli("dead", "show", entry).stdout)
        shown = cli("dead", "show", entry, "--json")
        check_lines(shown.stdout)
        assert shown.json()["id"] == entry
    check_lines(cli("dead", "show", NASTY.replace("\x00", "")).stdout)
    check_lines(cli("dead", "show", "no\n\x1b[2Jsuch").stderr)


def test_a_payload_is_shown_escaped(cli: Cli, hostile: Batches) -> None:
    hostile.redis.delete(hostile.keys.pending)
    for i, payload in enumerate([NASTY.encode(), json.dumps(NASTY).encode(), b"\x1b[2J\xff\xfe"]):
        hostile.push(task("fail", f"{i}", payload=payload))
    cli("run", "--wait", "0s")

    for i in range(3):
        check_lines(cli("dead", "show", f"{i}").stdout)


def test_a_reason_to_pause_is_shown_escaped(cli: Cli, batches: Batches) -> None:
    batches.redis.set(batches.keys.paused, NASTY)
    batches.redis.sadd("taskbatch:queues", NASTY, "default")
    batches.redis.hset(batches.keys.runs_info, NASTY, NASTY)
    batches.redis.zadd(batches.keys.runs, {NASTY: 1})

    result = cli("status", env={"TASKBATCH_REDIS_URL": batches.server.url})

    assert result.returncode == 0, result.stderr
    check_lines(result.stdout)
    check_lines(result.stderr)


def test_metrics_of_a_nasty_type_are_those_of_an_unknown_one(cli: Cli, hostile: Batches) -> None:
    cli("run", "--wait", "0s")

    text = cli("metrics").stdout

    check_lines(text)
    assert 'taskbatch_tasks_total{outcome="dead",queue="default",type="unknown"} 3.0' in text
