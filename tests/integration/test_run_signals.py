"""The program is told to stop: politely, then firmly."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch.task import parse
from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from tests.drilling import Drill
    from tests.program import Result


def payload(path: object) -> bytes:
    return json.dumps(str(path)).encode()


def told(result: Result) -> dict[str, object]:
    report = json.loads(result.stdout)
    parts = ("succeeded", "retried", "released", "dead", "expired", "lost")
    assert report["claimed"] == sum(report[part] for part in parts)
    assert report["exit_code"] == result.returncode
    return dict(report)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_what_runs_finish(batches: Batches, drill: Drill, number: signal.Signals) -> None:
    for i in range(10):
        batches.push(task("hold", f"{i}", payload=payload(drill.gate)))
    run = drill.spawn("run", "-c", "2", "--grace", "20s")
    drill.wait_for("start 0", "start 1")

    run.signal(number)
    eventually(lambda: batches.lengths() == {"pending": 8, "processing": 2}, "what has not begun")
    drill.open_gate()
    result = run.wait()

    report = told(result)
    assert (report["stop_reason"], report["succeeded"], report["released"], result.returncode) == ("signal", 2, 0, 0)
    assert batches.lengths() == {"pending": 8}
    assert len(drill.starts()) == 2
    assert not batches.redis.exists(batches.keys.runs)


def test_what_does_not_finish_in_time_is_an_interruption(batches: Batches, drill: Drill) -> None:
    batches.push(task("hold", "a", payload=payload(drill.gate)))
    run = drill.spawn("run", "--grace", "300ms")
    drill.wait_for("start a")

    run.signal(signal.SIGTERM)
    began = time.monotonic()
    result = run.wait()

    assert time.monotonic() - began < 3.0
    report = told(result)
    assert (result.returncode, report["stop_reason"], report["released"]) == (75, "signal", 1)
    again = parse(batches.redis.lindex(batches.keys.pending, -1))
    assert again is not None
    assert (again.id, again.interruptions, again.failures) == ("a", 1, 0)
    assert batches.lengths() == {"pending": 1}
    assert batches.history()[0]["result"] == "interrupted"


def test_the_second_signal_hands_back_now(batches: Batches, drill: Drill) -> None:
    batches.push(task("block", "a", payload=b"30"))
    run = drill.spawn("run", "--grace", "60s")
    drill.wait_for("start a")

    run.signal(signal.SIGTERM)
    eventually(lambda: batches.lengths() == {"processing": 1}, "the first one")
    time.sleep(0.2)  # a signal that is not yet taken in and another of its kind would be one
    run.signal(signal.SIGTERM)
    began = time.monotonic()
    result = run.wait()

    assert time.monotonic() - began < 3.0
    assert told(result)["stop_reason"] == "signal"
    assert result.returncode == 75
    assert batches.lengths() == {"pending": 1}


def test_a_signal_while_waiting_ends_the_wait_and_is_no_trouble(batches: Batches, drill: Drill) -> None:
    run = drill.spawn("run", "--wait", "60s")
    eventually(lambda: batches.redis.info("clients")["blocked_clients"] == 1, "the wait")

    run.signal(signal.SIGTERM)
    began = time.monotonic()
    result = run.wait()

    assert time.monotonic() - began < 2.5
    assert (result.returncode, told(result)["stop_reason"]) == (0, "signal")
    batches.check_base_line()


def test_the_lease_is_kept_alive_through_the_grace(batches: Batches, drill: Drill) -> None:
    batches.wait_until_it_reaps()
    batches.push(task("hold", "a", payload=payload(drill.gate)))
    run = drill.spawn("run", "--lease", "3s", "--grace", "30s")
    drill.wait_for("start a")
    run.signal(signal.SIGTERM)
    (name,) = batches.redis.zrange(batches.keys.runs, 0, -1)
    first = batches.redis.zscore(batches.keys.runs, name)

    eventually(lambda: batches.redis.zscore(batches.keys.runs, name) > first + 3000, "two renewals")
    drill.open_gate()

    assert run.wait().returncode == 0
    assert drill.lines() == ["start a", "end a"]


def test_a_run_whose_server_is_frozen_leaves_within_its_grace(batches: Batches, drill: Drill) -> None:
    batches.push(task("nap", "a", payload=b"0.5"))
    run = drill.spawn("run", "--grace", "1s", "--wait", "60s")
    drill.wait_for("start a")
    batches.server.pause()
    try:
        run.signal(signal.SIGTERM)
        began = time.monotonic()
        result = run.wait()
    finally:
        batches.server.resume()

    # The reply it waits for may take the socket's timeout of 5 s, and then it is over.
    assert time.monotonic() - began < 1.0 + 5.0 + 2.0
    assert (result.returncode, told(result)["stop_reason"]) == (75, "redis_lost")
