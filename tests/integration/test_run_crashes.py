"""Runs that die, for real: SIGKILL, a stop that lasts too long, a task that takes the process along."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from taskbatch import Task, job
from taskbatch.scripts import script
from taskbatch.task import parse
from tests.batches import SHORT_LEASE, Batches, eventually, task

if TYPE_CHECKING:
    from tests.drilling import Drill


def end_leases(batches: Batches) -> None:
    """Let the leases of all runs be over, as time would."""
    for run in batches.redis.zrange(batches.keys.runs, 0, -1):
        batches.redis.zadd(batches.keys.runs, {run: batches.now_ms() - 1}, xx=True)


def held(drill: Drill) -> bytes:
    return json.dumps(str(drill.gate)).encode()


def test_what_a_killed_run_held_runs_once_its_lease_is_over(batches: Batches, drill: Drill) -> None:
    batches.wait_until_it_reaps()
    for i in range(6):
        batches.push(task("hold", f"{i}", payload=held(drill)))
    run = drill.spawn("run", "-c", "2", "--lease", "60s")
    drill.wait_for("start 0", "start 1")
    run.kill()
    drill.open_gate()

    early = drill("run", "--lease", "3s", "--wait", "0s")
    assert early.json()["reaped"] == 0  # its lease is good: it may be alive
    assert early.json()["succeeded"] == 4
    end_leases(batches)
    late = drill("run", "--lease", "3s", "--wait", "0s")

    assert (late.json()["reaped"], late.json()["succeeded"], late.returncode) == (2, 2, 0)
    assert drill.starts() == {"0": 2, "1": 2, "2": 1, "3": 1, "4": 1, "5": 1}
    batches.check_base_line()
    crashed = [line for line in batches.history() if line["result"] == "crashed"]
    assert len(crashed) == 1
    assert batches.totals()["runs:crashed"] == 1
    assert batches.totals()["reaped:recovered"] == 2


def test_the_task_that_kills_the_process_dies_and_its_neighbours_do_not(batches: Batches, drill: Drill) -> None:
    """One among 19 innocents at concurrency 4: four crashes, then it is dead, and all others are done."""
    batches.wait_until_it_reaps()
    for i in range(20):
        batches.push(task("kill", "culprit") if i == 7 else task("nap", f"{i}", payload=b"0.02"))

    ends = []
    while len(ends) < 10:
        ends.append(drill("run", "-c", "4", "--lease", "3s", "--wait", "0s").returncode)
        if ends[-1] == 0:
            break
        end_leases(batches)

    assert ends == [-9, -9, -9, -9, 0]
    (letter,) = batches.dead()
    culprit = parse(letter["task"])
    assert culprit is not None
    assert (culprit.id, letter["reason"], culprit.failures) == ("culprit", b"crashed", 0)
    ended = [line for line in drill.lines() if line.startswith("end")]
    assert len(set(ended)) == 19
    starts = drill.starts()
    assert starts.pop("culprit") == 4
    # Only what was in flight beside it, or not yet acked, and that twice at most: then it runs alone.
    assert max(starts.values()) <= 3
    assert sum(count - 1 for count in starts.values()) <= 12
    assert batches.lengths() == {"dead": 1}


def test_an_innocent_survives_three_kills_from_outside(batches: Batches, drill: Drill) -> None:
    batches.wait_until_it_reaps()
    batches.push(task("hold", "a", payload=held(drill)))
    places = []
    for times in range(1, 4):
        run = drill.spawn("run", "--lease", "3s")
        eventually(lambda times=times: drill.starts()["a"] == times, "its start")
        run.kill()
        end_leases(batches)
        drill("reap", "--lease", "3s")
        places.append(batches.lengths())
    drill.open_gate()

    result = drill("run", "--lease", "3s", "--wait", "0s")

    assert places == [{"recovered": 1}, {"suspects": 1}, {"suspects": 1}]
    assert (result.returncode, result.json()["succeeded"]) == (0, 1)
    batches.check_base_line()


def test_a_run_that_was_stopped_beyond_its_lease_changes_nothing_when_it_goes_on(
    batches: Batches, drill: Drill
) -> None:
    """Its tasks were taken over meanwhile: its late acks move nothing, and it claims nothing more."""
    batches.wait_until_it_reaps()
    for i in range(6):
        batches.push(task("hold", f"{i}", payload=held(drill)))
    run = drill.spawn("run", "-c", "2", "--lease", "3s", "-n", "100")
    drill.wait_for("start 0", "start 1")
    run.signal(signal.SIGSTOP)
    drill.open_gate()
    eventually(lambda: batches.now_ms() > batches.redis.zrange(batches.keys.runs, 0, 0, withscores=True)[0][1])

    other = drill("run", "--lease", "3s", "--wait", "0s")
    run.signal(signal.SIGCONT)
    stopped = run.wait()

    assert (other.json()["reaped"], other.json()["succeeded"], other.returncode) == (2, 6, 0)
    report = stopped.json()
    assert (stopped.returncode, report["stop_reason"]) == (75, "lease_lost")
    assert (report["claimed"], report["lost"], report["succeeded"]) == (2, 2, 0)
    assert batches.totals()["tasks:succeeded:hold"] == 6
    assert drill.starts() == {"0": 2, "1": 2, "2": 1, "3": 1, "4": 1, "5": 1}
    batches.check_base_line()


def test_a_run_that_was_stopped_and_not_missed_goes_on(batches: Batches, drill: Drill) -> None:
    """Nobody has reaped it: what it finished counts, nothing ran twice, and it claims again."""
    for i in range(6):
        batches.push(task("hold", f"{i}", payload=held(drill)))
    run = drill.spawn("run", "-c", "2", "--lease", "3s", "--wait", "0s")
    drill.wait_for("start 0", "start 1")
    run.signal(signal.SIGSTOP)
    drill.open_gate()
    eventually(lambda: batches.now_ms() > batches.redis.zrange(batches.keys.runs, 0, 0, withscores=True)[0][1])
    run.signal(signal.SIGCONT)

    result = run.wait()

    assert (result.returncode, result.json()["succeeded"], result.json()["lost"]) == (0, 6, 0), result
    assert set(drill.starts().values()) == {1}
    batches.check_base_line()


def test_many_orphans_come_back_in_order(batches: Batches) -> None:
    """20,000 of one run, by chunks; no script holds the server up for long."""
    run, ran = "0123456789abcdef", []

    @job("note")
    def note(task: Task) -> None:
        ran.append(task.id)

    for start in range(0, 20_000, 1000):
        batches.redis.lpush(batches.keys.processing(run, 0), *(task("note", f"{start + i}") for i in range(1000)))
    batches.redis.zadd(batches.keys.runs, {run: 1})
    batches.redis.config_set("slowlog-log-slower-than", 200)
    batches.redis.config_set("slowlog-max-len", 1000)
    batches.redis.slowlog_reset()
    batches.wait_until_it_reaps()

    report = batches.run(note, max_tasks=3, concurrency=1, lease=SHORT_LEASE)

    assert report.tally.reaped == 20_000
    assert ran == ["0", "1", "2"]
    assert batches.lengths() == {"recovered": 19_997}
    reap = script("reap").sha.encode()
    took = sorted(entry["duration"] for entry in batches.redis.slowlog_get(1000) if reap in entry["command"])
    batches.redis.config_set("slowlog-log-slower-than", 10_000)
    assert len(took) >= 18  # of 20, the first of which is sent as a whole
    assert took[len(took) // 2] < 10_000  # µs; the middle one, for a busy machine may stop the server in any of them
