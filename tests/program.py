"""The command line program as a user has it: a process with arguments, output and an exit code."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.daemon import wait_until

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping

# What the machine or CI has set must not leak into a test: it sets what it wants itself.
_FOREIGN = ("TASKBATCH_", "REDIS_", "GITHUB_", "KUBERNETES_", "PYTHON", "XDG_", "COV_")
_FOREIGN_NAMES = ("CI", "NO_COLOR", "FORCE_COLOR", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


def program() -> list[str]:
    """Return how to start it: $TASKBATCH_BIN, or the development install beside this interpreter."""
    if binary := os.environ.get("TASKBATCH_BIN"):
        return [binary]
    script = Path(sys.executable).with_name("taskbatch")
    return [str(script)] if script.exists() else [sys.executable, "-m", "taskbatch"]


@dataclass(frozen=True)
class Result:
    """How a finished process ended."""

    returncode: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Return what stdout says, as one JSON value."""
        return json.loads(self.stdout)


class Background:
    """A process that runs beside the test; its output goes to files, so it never blocks on a full pipe."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str], base: Path) -> None:
        self._stdout = base.with_suffix(".stdout")
        self._stderr = base.with_suffix(".stderr")
        with self._stdout.open("wb") as out, self._stderr.open("wb") as err:
            self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def stdout(self) -> str:
        """What it has printed so far."""
        return self._stdout.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 30.0) -> Result:
        """Return how it ended; subprocess.TimeoutExpired after `timeout` seconds."""
        return Result(self.process.wait(timeout), self.stdout, self.stderr)

    def wait_for(self, text: str, timeout: float = 30.0) -> None:
        """Return when stderr or stdout holds `text`; TimeoutError if it does not, or if the process ended."""

        def found() -> bool:
            ended = not self.running
            seen = text in self.stderr or text in self.stdout
            if ended and not seen:
                message = f"ended with {self.process.returncode} before {text!r}:\n{self.stderr}"
                raise TimeoutError(message)
            return seen

        wait_until(found, seconds=timeout, what=f"{text!r} in the output")

    def kill(self) -> None:
        """End it with SIGKILL; harmless when it has ended."""
        if self.running:
            self.process.kill()
        self.process.wait(10.0)


class Cli:
    """Starts the program: `cli("run", "--queue", "mail")` waits for its end, `cli.spawn(...)` does not.

    `cli.env` holds variables for every call; `env` of a call adds to it. The home directory and the
    current one are the test's own and empty.
    """

    def __init__(self, directory: Path) -> None:
        self.command = program()
        self.home = directory / "home"
        self.cwd = directory / "work"
        self._output = directory / "output"
        for path in (self.home, self.cwd, self._output):
            path.mkdir()
        self.env: dict[str, str] = {}
        self._background: list[Background] = []

    def __call__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout: float = 60.0,
        cwd: Path | None = None,
    ) -> Result:
        """Run it to its end; subprocess.TimeoutExpired, with the process killed, after `timeout` seconds."""
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=cwd or self.cwd,
            env=self.environment(env),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def spawn(self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Background:
        """Start it and return at once; whatever still runs at the end of the test is killed."""
        base = self._output / f"process{len(self._background)}.txt"
        process = Background([*self.command, *arguments], cwd or self.cwd, self.environment(env), base)
        self._background.append(process)
        return process

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables a process gets: the machine's without what could steer it, then ours."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_FOREIGN) and name not in _FOREIGN_NAMES
        }
        own = {"HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        return {**inherited, **own, **self.env, **(extra or {})}

    def close(self) -> None:
        for process in self._background:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
