"""`command.run`: run a program from an allow-list.

At least once: a command may run twice, and one that a crash cut off runs again from the start. Put only
such commands on the list (`rsync`, `pg_dump` into a file, a backup of its own name), never "append a line".

The list is a JSON file named by COMMANDS_FILE; a payload chooses a name in it, never a program:

    {"backup": ["/usr/local/bin/backup", "--quiet"], "refresh": ["/usr/bin/psql", "-f", "/srv/refresh.sql"]}

    taskbatch enqueue command.run '{"name": "backup", "arguments": ["photos"]}'

There is no shell, and an argument that looks like an option is refused.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from taskbatch import job

TIMEOUT = 240.0
"""Seconds; less than the job's, so that the program is ended here, with all it started."""

KEPT_OUTPUT = 2000


@dataclass(frozen=True)
class Command:
    """A name on the allow-list, and arguments put after those that are there."""

    name: str
    arguments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if any(argument.startswith("-") or "\0" in argument for argument in self.arguments):
            msg = "an argument must not look like an option"
            raise ValueError(msg)


@job("command.run", timeout=300, max_attempts=3)
def run(command: Command) -> None:
    """Run the program to its end; another exit status than 0 raises, with the end of what it printed."""
    allowed = json.loads(Path(os.environ["COMMANDS_FILE"]).read_text(encoding="utf-8"))
    if command.name not in allowed:
        msg = f"{command.name} is not on the list of allowed commands"
        raise PermissionError(msg)
    argv = [*allowed[command.name], *command.arguments]
    # A file, not a pipe: a child that stays behind could hold a pipe open for ever.
    with tempfile.TemporaryFile() as output:
        status = run_group(argv, output.fileno())
        if status != 0:
            output.seek(max(0, output.tell() - KEPT_OUTPUT))
            msg = f"{argv[0]} ended with {status}: {output.read().decode(errors='replace').strip()}"
            raise RuntimeError(msg)


def run_group(argv: list[str], output: int) -> int:
    """Return the exit status; on a timeout, of ours or of the job, kill the program and all it started."""
    process = subprocess.Popen(  # noqa: S603 - the program is from the allow-list
        argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )
    try:
        return process.wait(TIMEOUT)
    except BaseException:  # JobTimeout is no Exception
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
