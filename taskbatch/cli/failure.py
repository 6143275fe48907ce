"""From what went wrong to an exit code and one line on stderr."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import click

from taskbatch.cli.streams import Stream
from taskbatch.errors import (
    ConfigError,
    DoubtError,
    ExitCode,
    PayloadTooLargeError,
    RefusedError,
    TaskbatchError,
    UnreachableError,
)
from taskbatch.logs import escape

if TYPE_CHECKING:
    from taskbatch.cli.session import Session


PATIENCE = 1.0
"""Seconds an error waits for a reader that has stopped reading."""


class FailedError(TaskbatchError):
    """The command did what it could, and that was not what was asked for. Ends in exit code 1."""


MEANINGS = {
    ExitCode.OK: "done: nothing left, a budget was reached, or the queue is paused",
    ExitCode.FAILED: "what --fail-on names has happened, or not all that was asked for could be done",
    ExitCode.USAGE: "usage",
    ExitCode.UNAVAILABLE: "Redis could not be reached, nothing was claimed",
    ExitCode.INTERNAL: "internal error",
    ExitCode.INTERRUPTED: "interrupted: everything was handed back, or is left to the reaper",
    ExitCode.CONFIG: "configuration: jobs, server, permission, a key of a wrong type",
}
"""What each exit code means, for the help."""

CODES: dict[type[BaseException], ExitCode] = {
    FailedError: ExitCode.FAILED,
    ConfigError: ExitCode.CONFIG,
    UnreachableError: ExitCode.UNAVAILABLE,
    # Redis is there, but as good as not: full, read-only, loading.
    RefusedError: ExitCode.UNAVAILABLE,
    DoubtError: ExitCode.INTERRUPTED,
    PayloadTooLargeError: ExitCode.USAGE,
    KeyboardInterrupt: ExitCode.INTERRUPTED,
    click.Abort: ExitCode.INTERRUPTED,
    click.UsageError: ExitCode.USAGE,
}


class PartlyError(TaskbatchError):
    """A part was done when `cause` came in between; the text says how much. Ends in the exit code of the cause."""

    def __init__(self, text: str, cause: BaseException) -> None:
        super().__init__(text)
        self.cause = cause


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code an error ends in."""
    if isinstance(error, PartlyError):
        return code_of(error.cause)
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), ExitCode.INTERNAL)


def explain(error: BaseException) -> str:
    """Return what to tell a person about an error, in one line, secrets not yet removed."""
    match error:
        case click.UsageError():
            command = error.ctx.command_path if error.ctx is not None else "taskbatch"
            return f"{error.format_message().rstrip('.')} (try '{command} --help')"
        case KeyboardInterrupt() | click.Abort():
            return "interrupted"
        case TaskbatchError():
            return str(error)
        case click.ClickException():
            return error.format_message()
        case _:
            return f"internal error: {type(error).__name__}: {_text(error)}{_place(error)}"


def complain(session: Session, error: BaseException) -> int:
    """Print one line about `error`, with -v the traceback too; returns the exit code."""
    if session.verbose and not isinstance(error, (click.ClickException, click.Abort)):
        for line in "".join(traceback.format_exception(error)).splitlines():
            print_error(f"  {escape(session.redact(line))}")
    tell(session, explain(error))
    return code_of(error)


def tell(session: Session, problem: str) -> None:
    """Print the line that says what went wrong."""
    print_error(f"taskbatch: error: {escape(session.redact(problem))}")


def print_error(line: str) -> None:
    """Print a line on stderr. Not by sys.stderr: a job may have closed it, or hang in the middle of a print."""
    Stream(2).write(f"{line}\n".encode(errors="backslashreplace"), PATIENCE)


def _text(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())[:500]
    except Exception:  # noqa: BLE001 - a raising __str__
        return "?"


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
