"""Programs whose memory and handles are measured: `hordes.py drain|fail|storm URL ...`, one JSON line at the end.

They are processes of their own, so that what they use is what a run uses, and nothing a test brought along.
"""

from __future__ import annotations

import json
import logging
import os
import random
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from taskbatch import Task, job
from taskbatch.batch import run_batch
from taskbatch.registry import Registry
from taskbatch.settings import PushSettings, RedisSettings, RunSettings
from taskbatch.signals import Signals

if TYPE_CHECKING:
    from taskbatch.report import Report

Sample = tuple[int, int, int]


def status() -> dict[str, int]:
    """Return what the kernel says of this process that is a number; memory in kB."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        words = [line.split() for line in file]
    return {word[0].rstrip(":"): int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}


def usage() -> Sample:
    """Return threads, open descriptors, and resident memory in kB."""
    now = status()
    return now["Threads"], len(os.listdir("/proc/self/fd")), now["VmRSS"]  # noqa: PTH208


class Sampler:
    """Notes what the process uses, every so many calls."""

    def __init__(self, every: int) -> None:
        self.samples: list[Sample] = []
        self._every = every
        self._calls = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._calls += 1
            if self._calls % self._every == 0:
                self.samples.append(usage())


def run(url: str, jobs: list[Any], **settings: Any) -> Report:
    """Do one run on the queue `default`."""
    defaults = {"wait": 0.0, "max_tasks": None, "max_runtime": None}
    return run_batch(
        RunSettings(**{**defaults, **settings}),
        RedisSettings(url=url, timeout=30.0),
        PushSettings(),
        lambda: Registry(jobs),
        signals=Signals(),
    )


def drain(url: str, every: str) -> dict[str, Any]:
    """Drain the queue of tasks that do nothing."""
    sample = Sampler(int(every))

    @job("nothing")
    def nothing() -> None:
        sample()

    report = run(url, [nothing])
    return {"report": report.as_dict(), "samples": sample.samples}


def fail(url: str, every: str) -> dict[str, Any]:
    """Run tasks that all fail for good, with a traceback, a cause, and a text."""
    sample = Sampler(int(every))

    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise KeyError("x" * 500)

    @job("fail", max_attempts=1)
    def failing(task: Task) -> None:
        sample()
        try:
            deep(10)
        except KeyError as error:
            raise ValueError(task.id) from error

    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger().setLevel(logging.DEBUG)
    report = run(url, [failing])
    return {"report": report.as_dict(), "samples": sample.samples}


def storm(url: str, runs: str, seed: str) -> dict[str, Any]:
    """Do many short runs, forked off one after the other; every second one is killed at a random moment of its life."""
    rng = random.Random(int(seed))
    killed = ended = 0

    @job("nothing")
    def nothing() -> None: ...

    for i in range(int(runs)):
        pid = os.fork()
        if pid == 0:
            # One that is to be killed must not have ended before, however fast the machine is.
            run(url, [nothing], concurrency=2, lease=3.0, max_tasks=12 if i % 2 == 0 else None, wait=i % 2 * 30.0)
            os._exit(0)
        if i % 2:
            # The moment is measured in time, for want of anything else that all moments of a process have.
            process = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(process, select.POLLIN)
            poll.poll(rng.uniform(0, 30))
            os.close(process)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        killed += os.WIFSIGNALED(status)
        ended += os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
    return {"killed": killed, "ended": ended}


if __name__ == "__main__":
    programs = {"drain": drain, "fail": fail, "storm": storm}
    said = programs[sys.argv[1]](*sys.argv[2:])
    # Not what wait4() tells: before a process becomes another program, it is as large as its parent.
    print(json.dumps({**said, "peak": status()["VmHWM"]}))  # noqa: T201
