"""One call of a job, turned into a value: whatever the job does, it fails its own task only.

    decode the payload → call the function → Succeeded | Failed | BadPayload

Everything a job can raise is caught here, SystemExit and KeyboardInterrupt included, and so is the timeout
the main thread raises through the `Watch`, wherever in these lines it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from taskbatch.failure import error_text, one_line, traceback_text
from taskbatch.payload import PayloadError
from taskbatch.watch import JobTimeout, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.declaration import Job
    from taskbatch.task import Task

__all__ = ["BadPayload", "Failed", "JobTimeout", "Result", "Succeeded", "Watch", "invoke"]


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The job returned."""

    ok: ClassVar[bool] = True
    permanent: ClassVar[bool] = False
    timed_out: ClassVar[bool] = False
    error: ClassVar[str] = ""
    traceback: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The job raised, or was over its timeout and ended; trying again may help."""

    error: str
    traceback: str = ""
    timed_out: bool = False
    ok: ClassVar[bool] = False
    permanent: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class BadPayload:
    """The payload is not what the job wants, so it was not called; trying again cannot help."""

    error: str
    ok: ClassVar[bool] = False
    permanent: ClassVar[bool] = True
    timed_out: ClassVar[bool] = False
    traceback: ClassVar[str] = ""


Result: TypeAlias = Succeeded | Failed | BadPayload

_SUCCEEDED = Succeeded()


def invoke(job: Job, task: Task, watch: Watch, redact: Callable[[str], str] = str) -> Result:
    """Call `job` for `task` and return what came of it. Never raises; when it has returned, no timeout comes.

    A job that returned has succeeded, also if its timeout was raised too late to reach it. `redact` takes our
    secrets out of what it says went wrong: a job sees the same environment as we do, and its errors are kept.
    """
    # Stands if the timeout arrives in our own lines, before the job or while its error is described.
    result: Result = Failed(_overdue(job), timed_out=True)
    try:
        try:
            watch.arm()
            ready = _arguments(job, task, redact)
            if isinstance(ready, BadPayload):
                result = ready
            else:
                value = job.function(*ready[0], **ready[1])
                result = _SUCCEEDED
                if value is not None:
                    result = _judged(value)
        except BaseException as error:  # noqa: BLE001 - the point of this function
            if not result.ok:
                result = _failed(job, watch, error, redact)
        watch.disarm()
    except JobTimeout:
        # There is only this one, and it has come: nothing to disarm any more.
        pass
    return result


def _arguments(job: Job, task: Task, redact: Callable[[str], str]) -> tuple[list[Any], dict[str, Any]] | BadPayload:
    try:
        return job.binding.arguments(task)
    except PayloadError as error:
        return BadPayload(one_line(redact(str(error))))


def _judged(value: object) -> Result:
    """Return success for anything a job returns but what has yet to be run: that would be acked undone."""
    if isinstance(value, CoroutineType):
        value.close()  # else Python warns that nobody awaited it
    if isinstance(value, (CoroutineType, GeneratorType)):
        return Failed(f"the job returned a {type(value).__name__} that nobody runs: jobs are plain functions")
    return _SUCCEEDED


def _failed(job: Job, watch: Watch, error: BaseException, redact: Callable[[str], str]) -> Failed:
    try:
        text, trace = error_text(error, redact), traceback_text(error, redact)
    except JobTimeout:
        # Its __str__ did not end. (Or raised this itself: then the watch goes on and is disarmed as ever.)
        return Failed(f"{_overdue(job)}, describing its error", timed_out=True)
    if watch.expired:
        text = _overdue(job) if type(error) is JobTimeout else one_line(f"{_overdue(job)}: {text}")
    return Failed(text, trace, timed_out=watch.expired)


def _overdue(job: Job) -> str:
    return f"timed out after {job.timeout:g} s"
