"""A program that runs beside a test, in a directory of its own, until it is stopped by its pid."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class StartError(Exception):
    """The program ended, or did not get ready in time; the message holds the end of its log."""


def free_port() -> int:
    """Return a loopback port that was free a moment ago; somebody else may still take it first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(ready: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Return as soon as `ready()` is true; TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while not ready():
        if time.monotonic() > deadline:
            message = f"{what}: not within {seconds:g} s"
            raise TimeoutError(message)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


class Daemon:
    """One process: `start()` returns when `ready()` is true, and may be called again after an end."""

    def __init__(self, command: Sequence[str], directory: Path, ready: Callable[[], bool]) -> None:
        self.command = list(command)
        self.log = directory / "log"
        self._directory = directory
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            message = f"{self.command[0]} was not started"
            raise StartError(message)
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, seconds: float = 20.0) -> None:
        if self.running:
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self._directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            wait_until(lambda: not self.running or self._ready(), seconds=seconds, what=self.command[0])
        except TimeoutError as error:
            self.kill()
            raise StartError(self._tail()) from error
        if not self.running:
            raise StartError(self._tail())

    def stop(self, *, seconds: float = 10.0) -> None:
        """End it with SIGTERM, as a shutdown does; with SIGKILL if that does not help."""
        self._end(signal.SIGTERM, seconds)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash does."""
        self._end(signal.SIGKILL, 10.0)

    def pause(self) -> None:
        """Freeze it with SIGSTOP: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals, seconds: float) -> None:
        if self._process is None:
            return
        self._signal(number)
        # A frozen process must not outlive its test: it takes SIGTERM only when it goes on.
        self._signal(signal.SIGCONT)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10.0)

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([f"{self.command[0]} did not start:", *lines[-20:]])
