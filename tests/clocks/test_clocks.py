"""A client's clock is an hour off, or jumps by an hour: Redis' clock counts, and spans are measured by no clock."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.batches import Batches, eventually, task
from tests.conftest import unavailable
from tests.servers import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.program import Background, Cli, Result
    from tests.servers import Server

HOUR = 3600
LEASE = 5.0
WRONG = ["+1h", "-1h"]


@pytest.fixture(scope="session")
def libfaketime() -> str:
    """Return the library that lies about the time, for threads."""
    if shutil.which("faketime") is None:
        unavailable(UnavailableError("faketime is not installed: apt-get install faketime"))
    shown = subprocess.run(["faketime", "-m", "-f", "+0", "env"], capture_output=True, text=True, check=True).stdout
    return next(line.partition("=")[2] for line in shown.splitlines() if line.startswith("LD_PRELOAD="))


class Clocks:
    """Runs the program with clocks that are `shift` away from the server's: `+1h`, `-1h`, `+0`."""

    def __init__(self, cli: Cli, server: Server, directory: Path, library: str) -> None:
        self.batches = Batches(server)
        self.gate = directory / "gate"
        self._cli = cli
        self._directory = directory
        self._library = library
        self._ledger = directory / "ledger"
        cli.env.update(
            TASKBATCH_REDIS_URL=server.url,
            TASKBATCH_JOBS=str(Path(__file__).with_name("jobs.py")),
            TASKBATCH_REPORT="json",
            LEDGER=str(self._ledger),
        )

    def __call__(self, shift: str, *arguments: str) -> Result:
        return self._cli(*arguments, env=self._faked(FAKETIME=shift))

    def spawn(self, shift: str, *arguments: str) -> Background:
        return self._cli.spawn(*arguments, env=self._faked(FAKETIME=shift))

    def spawn_with_hand(self, *arguments: str) -> tuple[Background, Path]:
        """Start it with a clock that is right, until another shift is written to the file."""
        hand = self._directory / "hand"
        hand.write_text("+0\n")
        env = self._faked(FAKETIME_TIMESTAMP_FILE=str(hand), FAKETIME_NO_CACHE="1")
        return self._cli.spawn(*arguments, env=env), hand

    def starts(self) -> Counter[str]:
        """Return how often each task was started."""
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        return Counter(line.split()[1] for line in lines)

    def ahead_ms(self, key: str) -> list[float]:
        """Return how far the scores of a sorted set are ahead of the server's clock."""
        now = self.batches.now_ms()
        return [score - now for _, score in self.batches.redis.zrange(key, 0, -1, withscores=True)]

    def _faked(self, **settings: str) -> Mapping[str, str]:
        # A machine's clock may be wrong, but that of its uptime is not. (Without the last one threads wait for
        # seconds for what they should have at once: libfaketime repairs a fault that glibc no longer has.)
        fixed = {"DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}
        return {"LD_PRELOAD": self._library, **fixed, **settings}


@pytest.fixture
def clocks(cli: Cli, server: Server, tmp_path: Path, libfaketime: str) -> Clocks:
    return Clocks(cli, server, tmp_path, libfaketime)


def check_faked(result: Result, server_ms: int, shift: str) -> None:
    """The report's time of start is the process' own: it shows that the clock really was wrong."""
    day = result.json()["started_at"][:13]
    shown = subprocess.run(
        ["date", "-u", "-d", f"@{server_ms / 1000 + (HOUR if shift == '+1h' else -HOUR):.0f}", "+%Y-%m-%dT%H"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert day == shown


@pytest.mark.parametrize("shift", WRONG)
def test_a_lease_is_of_the_servers_time(clocks: Clocks, shift: str) -> None:
    clocks.batches.push(task("hold", "one", payload=json.dumps(str(clocks.gate)).encode()))
    before = clocks.batches.now_ms()

    run = clocks.spawn(shift, "run", "--lease", f"{LEASE}s", "--wait", "0s")
    eventually(lambda: clocks.starts()["one"])
    [left] = clocks.ahead_ms(clocks.batches.keys.runs)
    clocks.gate.touch()
    result = run.wait()

    assert 0 < left <= LEASE * 1000
    assert result.returncode == 0, result.stderr
    assert result.json()["duration_seconds"] <= (clocks.batches.now_ms() - before) / 1000
    check_faked(result, before, shift)
    clocks.batches.check_base_line()


@pytest.mark.parametrize("shift", WRONG)
def test_due_times_are_of_the_servers_time(clocks: Clocks, shift: str) -> None:
    clocks.batches.push(task("fail", "failing"))
    assert clocks(shift, "enqueue", "nap", "0", "--delay", "100s").returncode == 0

    result = clocks(shift, "run", "--wait", "0s")

    assert (result.json()["retried"], result.json()["claimed"]) == (1, 1), f"{result.stdout} {result.stderr}"
    retry, delayed = sorted(clocks.ahead_ms(clocks.batches.keys.scheduled))
    assert -5_000 < retry <= 100_000
    assert 80_000 < delayed <= 100_000


@pytest.mark.parametrize("shift", WRONG)
def test_what_is_due_runs_and_what_is_not_does_not(clocks: Clocks, shift: str) -> None:
    keys, now = clocks.batches.keys, clocks.batches.now_ms()
    nap = {"payload": b"0"}
    clocks.batches.redis.zadd(keys.scheduled, {b"0" + task("nap", "due", **nap): now - 1})
    clocks.batches.redis.zadd(keys.scheduled, {b"0" + task("nap", "not due", **nap): now + HOUR * 500})
    clocks.batches.push(task("nap", "expired", expires_at_ms=now - 1, **nap))
    clocks.batches.push(task("nap", "expires", expires_at_ms=now + HOUR * 500, **nap))

    result = clocks(shift, "run", "--wait", "0s")

    assert (result.json()["succeeded"], result.json()["expired"]) == (2, 1)
    assert clocks.starts() == {"due": 1, "expires": 1}
    assert clocks.batches.lengths() == {"scheduled": 1, "dead": 1}


@pytest.mark.parametrize("shift", WRONG)
def test_an_expiry_is_counted_from_the_servers_now(clocks: Clocks, shift: str) -> None:
    assert clocks(shift, "enqueue", "nap", "0", "--expires", "5m").returncode == 0

    assert clocks("+0", "run", "--wait", "0s").json()["succeeded"] == 1


def test_a_limit_is_one_for_all_clocks(clocks: Clocks) -> None:
    clocks.batches.push(*(task("few", f"{i}") for i in range(9)))

    results = [clocks(shift, "run", "--wait", "0s", "-n", "5") for shift in ("-1h", "+0", "+1h")]

    assert [result.json()["succeeded"] for result in results] == [3, 0, 0]
    assert sum(clocks.starts().values()) == 3
    assert clocks.batches.lengths() == {"scheduled": 6}
    # Three an hour: one every twenty minutes.
    assert all(1_100_000 < ahead < 6 * 1_200_000 + 1_000 for ahead in clocks.ahead_ms(clocks.batches.keys.scheduled))


@pytest.mark.slow
@pytest.mark.parametrize("shift", WRONG)
def test_a_step_in_the_middle_of_a_run_changes_nothing(clocks: Clocks, shift: str) -> None:
    naps = [task("nap", f"{i}", payload=b"0.5") for i in range(24)]
    clocks.batches.push(*naps, task("hold", "held", payload=json.dumps(str(clocks.gate)).encode()))
    before = clocks.batches.now_ms()

    # Long enough for three renewals after the step, and for a lease to end that nobody renews.
    run, hand = clocks.spawn_with_hand("drain", "-c", "2", "--lease", f"{LEASE}s", "--max-runtime", "50s")
    eventually(lambda: len(clocks.starts()) >= 2)
    # In one go: a reader in between must not find half of it.
    ahead = hand.with_name("next")
    ahead.write_text(f"{shift}\n")
    ahead.rename(hand)
    eventually(lambda: clocks.starts()["held"])
    [left] = clocks.ahead_ms(clocks.batches.keys.runs)
    clocks.gate.touch()
    result = run.wait()

    assert result.returncode == 0, result.stderr
    report = result.json()
    assert (report["succeeded"], report["lost"], report["stop_reason"]) == (25, 0, "empty")
    assert 0 < left <= LEASE * 1000
    assert 5 < report["duration_seconds"] <= (clocks.batches.now_ms() - before) / 1000
    assert set(clocks.starts().values()) == {1}
    assert report["by_type"]["nap"]["seconds"] < 24 * 0.5 + 12
    clocks.batches.check_base_line()


@pytest.mark.slow
def test_runs_an_hour_apart_share_a_queue(clocks: Clocks) -> None:
    clocks.batches.push(*(task("nap", f"{i}", payload=b"0.1") for i in range(120)))
    clocks.batches.push(task("hold", "held", payload=json.dumps(str(clocks.gate)).encode()))
    arguments = ["drain", "-c", "2", "--lease", f"{LEASE}s", "--max-runtime", "50s"]

    runs = [clocks.spawn(shift, *arguments) for shift in ("-1h", "+1h")]
    eventually(lambda: len(clocks.starts()) >= 20)
    # While both live, whoever looks finds nobody crashed, whatever time he thinks it is.
    reaps = [clocks(shift, "reap", "--lease", "0.1s", "--json").json() for shift in ("+1h", "-1h")]
    clocks.gate.touch()
    results = [run.wait() for run in runs]

    assert [reap["queues"]["default"]["runs"] for reap in reaps] == [0, 0]
    assert [result.returncode for result in results] == [0, 0], results
    reports = [result.json() for result in results]
    assert sum(report["succeeded"] for report in reports) == 121
    assert all(report["succeeded"] > 0 for report in reports)
    assert [(report["lost"], report["reaped"]) for report in reports] == [(0, 0), (0, 0)]
    assert set(clocks.starts().values()) == {1}
    clocks.batches.check_base_line()


@pytest.mark.slow
@pytest.mark.parametrize("shift", WRONG)
def test_a_crashed_run_is_reaped_when_its_lease_is_over_and_not_before(clocks: Clocks, shift: str) -> None:
    clocks.batches.wait_until_it_reaps()
    clocks.batches.push(task("hold", "held", payload=json.dumps(str(clocks.gate)).encode()))
    run = clocks.spawn("+0", "run", "--lease", "3s")
    eventually(lambda: clocks.starts()["held"])
    run.kill()
    [left] = clocks.ahead_ms(clocks.batches.keys.runs)

    early = clocks(shift, "reap", "--lease", "3s", "--json").json()["queues"]["default"]["recovered"]
    still = any(ahead > 0 for ahead in clocks.ahead_ms(clocks.batches.keys.runs))
    eventually(lambda: all(ahead < 0 for ahead in clocks.ahead_ms(clocks.batches.keys.runs)))
    late = clocks(shift, "reap", "--lease", "3s", "--json").json()["queues"]["default"]["recovered"]

    assert left <= 3000
    # On a machine that is busy, even the first look may have come after its end.
    assert (early, late) == (0, 1) or (not still and (early, late) == (1, 0))
