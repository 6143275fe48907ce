"""Output that cannot fail, and a process that always ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch.cli.console import CLEAR, Console
from taskbatch.cli.progress import Progress, progress_line
from taskbatch.cli.streams import Stream, Tolerant
from taskbatch.report import Tally

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str, *, redirect: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a shell, with its descriptors as `redirect` has them."""
    command = f'"{sys.executable}" -c "$CODE" {redirect}'
    return subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "CODE": code},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def test_everything_is_written_through_a_small_pipe() -> None:
    read, write = os.pipe()
    reader = subprocess.Popen(["wc", "-c"], stdin=read, stdout=subprocess.PIPE)
    os.close(read)

    assert Stream(write).write(b"x" * 1_000_000)

    os.close(write)
    assert reader.communicate()[0].strip() == b"1000000"


def test_a_reader_that_does_not_read_is_not_waited_for_for_ever() -> None:
    read, write = os.pipe()
    started = time.monotonic()

    assert not Stream(write).write(b"x" * 1_000_000, patience=0.2)

    assert time.monotonic() - started < 2
    os.close(read)
    os.close(write)


def test_a_reader_that_left_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    assert not Stream(write).write(b"x")
    os.close(write)


def test_nothing_is_written_to_what_took_the_place_of_a_closed_descriptor() -> None:
    read, write = os.pipe()
    stream = Stream(write)
    here, there = socket.socketpair()
    os.dup2(here.fileno(), write)
    there.setblocking(False)

    assert not stream.write(b"a log line")

    with pytest.raises(BlockingIOError):
        there.recv(10)
    for one in (here, there):
        one.close()
    os.close(write)
    os.close(read)


def test_a_print_does_not_end_up_in_a_connection_that_took_the_place_of_stdout() -> None:
    read, write = os.pipe()
    tolerant = Tolerant(write, "<test>")
    here, there = socket.socketpair()
    os.dup2(here.fileno(), write)
    there.setblocking(False)

    assert tolerant.write(b"a print") == 7

    with pytest.raises(BlockingIOError):
        there.recv(10)
    for one in (here, there):
        one.close()
    os.close(write)
    os.close(read)


@pytest.mark.parametrize("redirect", [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full", "> >(true)"])
def test_a_broken_stdout_fails_no_print_and_changes_no_exit_code(redirect: str) -> None:
    code = """
from taskbatch.cli.streams import secure
secure()
import socket, sys
assert socket.socket().fileno() > 2
for _ in range(200):
    print("x" * 1000)
    print("y" * 1000, file=sys.stderr)
from taskbatch.cli.leaving import leave
leave(42)
"""
    assert python(code, redirect=redirect).returncode == 42


def test_what_is_printed_after_stdout_was_taken_goes_to_stderr() -> None:
    code = """
from taskbatch.cli.streams import secure, take_stdout
secure()
import os
print("before")
result = take_stdout()
print("from a job")
os.system("echo from its child")
result.write(b"the result")
"""
    done = python(code)
    assert done.stdout == "before\nthe result"
    assert done.stderr == "from a job\nfrom its child\n"


@pytest.mark.parametrize(
    "code",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import atexit, time; atexit.register(time.sleep, 60)",
        "import sys; sys.stdout.close(); sys.stderr.close()",
    ],
    ids=["thread", "atexit", "closed"],
)
def test_the_process_ends_whatever_was_left_behind(code: str) -> None:
    started = time.monotonic()
    done = python(f"{code}\nfrom taskbatch.cli.leaving import leave\nleave(7)")
    assert done.returncode == 7
    assert time.monotonic() - started < 10


def test_a_print_that_hangs_does_not_keep_the_process() -> None:
    code = """
from taskbatch.cli.streams import secure
secure()
import threading, time
threading.Thread(target=print, args=("x" * 10_000_000,)).start()
time.sleep(0.3)
from taskbatch.cli.leaving import leave
leave(7)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.wait(10) == 7
    assert process.stdout
    process.stdout.close()


def test_lines_go_above_the_progress_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    console = Console()
    console.is_terminal = True
    monkeypatch.setattr(console, "_write", written.append)

    console.status("5 done")
    console.line("a warning")
    console.status("")
    console.line("the end")

    assert written == [f"{CLEAR}5 done", f"{CLEAR}a warning\n5 done", CLEAR, "the end\n"]


def test_progress_is_shown_to_a_person_only_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    console = Console()
    monkeypatch.setattr(console, "_write", written.append)

    console.is_terminal = False
    progress = Progress(console, shown=True)
    time.sleep(0.21)
    progress.show(Tally())
    assert written == []

    console.is_terminal = True
    progress = Progress(console, shown=True)
    time.sleep(0.21)
    for _ in range(100):
        progress.show(Tally())
    progress.clear()
    assert written == [f"{CLEAR}0 done · 0/s", CLEAR]


def test_the_progress_line_counts() -> None:
    tally = Tally(claimed=20)
    for outcome, times in {"succeeded": 10, "dead": 1, "retried": 3}.items():
        for _ in range(times):
            tally.count("x", outcome)
    assert progress_line(tally, 2.0) == "11 done · 6/s · 6 in hand · 3 retried · 1 dead"
