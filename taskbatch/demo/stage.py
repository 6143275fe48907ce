"""Where the demo plays: a temporary directory with an embedded server, and real commands that use it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from taskbatch.demo.interruption import Interruption
from taskbatch.embedded import open_embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskbatch.demo.voice import Voice

JOBS = "taskbatch.demo.jobs"
PATIENCE = 60.0
"""Seconds a command may take before it is killed; the longest takes about 6."""

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Stage:
    """An open stage. `socket_url` is where its server is while the stage is open."""

    directory: Path
    socket_url: str
    voice: Voice
    interruption: Interruption

    @property
    def settings(self) -> dict[str, str]:
        """The variables that make a shell's `taskbatch` play here."""
        return {"TASKBATCH_REDIS_URL": f"embedded:{self.directory}", "TASKBATCH_JOBS": JOBS}

    def perform(self, *words: str, reads: str | None = None) -> int:
        """Show a command of `taskbatch`, run it, show what it prints; returns its exit code, -9 if it was killed."""
        self.voice.command(shlex.join(["taskbatch", *words]) + (f" < {reads}" if reads else ""))
        process: subprocess.Popen[bytes] | None = None
        try:
            # A process that was started and not noted would go on alone, and bring the server back.
            with self.interruption.held_back():
                process = self._start(words, self.directory / reads if reads else Path(os.devnull))
            watchdog = threading.Timer(PATIENCE, process.kill)
            watchdog.daemon = True
            watchdog.start()
            self._show(process)
            watchdog.cancel()
            return process.wait()
        finally:
            if process is not None:
                process.kill()
                process.wait()

    def _start(self, words: tuple[str, ...], reads: Path) -> subprocess.Popen[bytes]:
        with reads.open("rb") as stdin:
            return subprocess.Popen(  # noqa: S603 - ourselves, with words of our own
                [sys.executable, "-m", "taskbatch", *words],
                cwd=self.directory,
                env=self._environment(),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )

    def _environment(self) -> dict[str, str]:
        # What is set for a person's own queues must not steer ours, least of all where Redis is.
        foreign = ("TASKBATCH_", "REDIS_", "_TASKBATCH_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return {**kept, **self.settings, "TASKBATCH_LOG_FORMAT": "json", "PYTHONIOENCODING": "utf-8:backslashreplace"}

    def _show(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        ids = 0
        with process.stdout:
            for raw in process.stdout:
                line = raw.decode(errors="replace")
                ids += bool(_ID.fullmatch(line.strip()))
                if ids <= 1:
                    self.voice.output(line)
        if ids > 1:
            self.voice.output(f"… and {ids - 1} more ids")


@contextmanager
def open_stage(voice: Voice, *, keep: bool) -> Iterator[Stage]:
    """Give a stage. Afterwards its server is gone, however it ends, and unless `keep` so is its directory.

    SIGTERM and SIGHUP end the play as Ctrl-C does, by KeyboardInterrupt. Raises ConfigError.
    """
    interruption = Interruption()
    directory: Path | None = None
    try:
        with interruption.held_back():
            directory = Path(tempfile.mkdtemp(prefix="taskbatch-demo-")).resolve()
        with open_embedded(directory) as server:
            try:
                yield Stage(directory, server.url, voice, interruption)
            finally:
                interruption.ignore()
    finally:
        interruption.ignore()
        if directory is not None and not keep:
            _remove(directory)
    # Not after Ctrl-C: what is left then is to end with the right exit code, however often it is pressed.
    interruption.restore()


def _remove(directory: Path) -> None:
    """Remove it, again if a server that is still leaving has put something into it meanwhile."""
    for _ in range(20):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(0.1)
