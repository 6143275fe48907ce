"""Calling a job: whatever it does, a value comes back."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from taskbatch.declaration import job
from taskbatch.invocation import BadPayload, Failed, Result, Succeeded, Watch, invoke
from taskbatch.payload import PayloadError
from taskbatch.task import Task
from taskbatch.watch import JobTimeout

if TYPE_CHECKING:
    from collections.abc import Callable


def run(function: Callable[..., Any], payload: bytes = b"{}", watch: Watch | None = None) -> Result:
    return invoke(job("it", timeout=5)(function), Task(id="1", payload=payload), watch or Watch())


def test_a_job_that_returns_has_succeeded_whatever_it_returns() -> None:
    assert run(lambda: None) == Succeeded()
    assert run(lambda payload: payload) == Succeeded()


def test_a_job_that_raises_has_failed_with_its_error_and_its_own_frames() -> None:
    def broken() -> None:
        raise ValueError("wrong")

    result = run(broken)

    assert result == Failed("ValueError: wrong", result.traceback)
    assert result.traceback.startswith(f'  File "{__file__}"')
    assert "in broken" in result.traceback
    assert "taskbatch/invocation.py" not in result.traceback


class Hostile(BaseException):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    "error",
    [SystemExit(0), KeyboardInterrupt(), GeneratorExit(), StopIteration(), MemoryError(), Hostile(), JobTimeout()],
)
def test_no_exception_is_too_strange(error: BaseException) -> None:
    def broken() -> None:
        raise error

    result = run(broken)

    assert isinstance(result, Failed)
    assert not result.timed_out


def test_endless_recursion_is_a_failure() -> None:
    def deeper() -> None:
        deeper()

    assert run(deeper).error.startswith("RecursionError: maximum recursion depth exceeded")


def test_what_is_kept_of_a_huge_error_is_bounded() -> None:
    def broken() -> None:
        raise ValueError("\0" * 10_000_000)

    result = run(broken)

    assert len(result.error.encode()) <= 4096
    assert len(result.traceback.encode()) <= 8192


def test_a_payload_that_does_not_fit_never_reaches_the_job() -> None:
    def never(payload: dict[str, int]) -> None:
        raise AssertionError

    assert run(never, b'{"a": "x"}') == BadPayload("a: expected an integer, got a string")
    assert run(never, b"\xff") == BadPayload("the payload is not UTF-8 at byte 0")


def test_a_payload_error_of_the_job_itself_is_an_ordinary_failure() -> None:
    def enqueues_nonsense() -> None:
        raise PayloadError("the payload cannot be written")

    assert isinstance(run(enqueues_nonsense), Failed)


@dataclass
class Explosive:
    a: int

    def __post_init__(self) -> None:
        raise KeyError(self.a)


def test_a_payload_class_that_breaks_is_an_ordinary_failure() -> None:
    def never(payload: Explosive) -> None:
        raise AssertionError

    assert run(never, b'{"a": 1}').error == "KeyError: 1"


@pytest.mark.parametrize("permanent", [True, False])
def test_only_a_bad_payload_is_permanent(permanent: bool) -> None:
    result: Result = BadPayload("x") if permanent else Failed("x")

    assert (result.ok, result.permanent, result.error) == (False, permanent, "x")
    assert (Succeeded().ok, Succeeded().permanent, Succeeded().error) == (True, False, "")


def test_a_coroutine_that_nobody_runs_is_not_taken_for_success() -> None:
    async def nobody_awaits() -> None:
        raise AssertionError

    assert "returned a coroutine that nobody runs" in run(lambda: nobody_awaits()).error
    assert "returned a generator that nobody runs" in run(lambda: (x for x in ())).error


def expire_soon(watch: Watch, after: float = 0.05) -> threading.Thread:
    def later() -> None:
        time.sleep(after)
        watch.expire()

    thread = threading.Thread(target=later)
    thread.start()
    return thread


def spin() -> None:
    while True:
        time.sleep(0.001)


def test_a_job_over_its_timeout_is_interrupted() -> None:
    watch = Watch()
    thread = expire_soon(watch)

    result = run(spin, watch=watch)

    thread.join()
    assert result == Failed("timed out after 5 s", result.traceback, timed_out=True)
    assert "in spin" in result.traceback


def test_a_job_that_turns_its_timeout_into_an_error_has_timed_out_all_the_same() -> None:
    def translates() -> None:
        try:
            spin()
        except BaseException as error:  # noqa: BLE001
            raise ValueError("gave up") from error

    watch = Watch()
    thread = expire_soon(watch)

    result = run(translates, watch=watch)

    thread.join()
    assert (result.error, result.timed_out) == ("timed out after 5 s: ValueError: gave up", True)


def test_a_job_that_shrugs_its_timeout_off_and_returns_has_succeeded() -> None:
    def shrugs() -> None:
        try:
            spin()
        except JobTimeout:
            pass

    watch = Watch()
    thread = expire_soon(watch)

    assert run(shrugs, watch=watch) == Succeeded()
    thread.join()


def test_a_timeout_reaches_a_message_that_never_ends() -> None:
    class Endless(Exception):  # noqa: N818
        def __str__(self) -> str:
            spin()
            return ""

    def broken() -> None:
        raise Endless

    watch = Watch()
    thread = expire_soon(watch)

    result = run(broken, watch=watch)

    thread.join()
    assert isinstance(result, Failed)
    assert result.timed_out


def test_a_watch_raises_at_most_once_and_only_while_the_job_runs() -> None:
    watch = Watch()
    answers: list[bool] = [watch.expire()]

    def expires_itself_twice() -> None:
        try:
            answers.append(watch.expire())
            spin()
        except JobTimeout:
            answers.append(watch.expire())

    run(expires_itself_twice, watch=watch)
    answers.append(watch.expire())

    assert answers == [False, True, False, False]
    late = Watch()
    run(lambda: None, watch=late)
    assert (late.expire(), late.expired) == (False, False)


def _opcodes(frames: tuple[str, ...], at: int, act: Callable[[], None], body: Callable[[], Result]) -> tuple[Result, int]:
    """Run `body` and call `act` before the instruction number `at` of the functions named in `frames`."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename.endswith(("taskbatch/invocation.py", "taskbatch/watch.py", "taskbatch/failure.py")):
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_code.co_name in frames:
                count += 1
                if count == at:
                    act()
            return trace
        return None

    sys.settrace(trace)
    try:
        result = body()
    finally:
        sys.settrace(None)
    return result, count


@pytest.mark.parametrize("ends", ["returns", "raises", "bad payload"])
def test_a_timeout_at_any_instruction_of_ours_is_still_a_result(ends: str) -> None:
    def ending() -> None:
        if ends == "raises":
            raise ValueError("wrong")

    def typed(payload: dict[str, int]) -> None: ...

    declared = job("it", timeout=5)(typed if ends == "bad payload" else ending)
    task = Task(payload=b"[]")
    frames = ("invoke", "arm", "disarm", "_arguments", "_failed", "_overdue", "error_text", "one_line", "traceback_text")
    raised = 0
    at = total = 1
    while at <= total:
        watch = Watch()
        helper_answers: list[bool] = []

        def act(watch: Watch = watch, answers: list[bool] = helper_answers) -> None:
            # From another thread, as in a run: it is delivered at once, before this very instruction.
            thread = threading.Thread(target=lambda: answers.append(watch.expire()))
            thread.start()
            thread.join()

        result, total = _opcodes(frames, at, act, lambda watch=watch: invoke(declared, task, watch))

        assert isinstance(result, (Succeeded, Failed, BadPayload))
        total = max(total, at)  # after an early end fewer instructions ran; the count grows back
        raised += helper_answers == [True]
        _settle()
        if at > 2000:
            break
        at += 1
    assert raised > 50


def _settle() -> None:
    """Give a stray exception a thousand places to show itself."""
    for _ in range(1000):
        abs(-1)


def test_thousands_of_timeouts_that_race_with_the_end_of_their_job_do_no_harm() -> None:
    def short(payload: int) -> None:
        for _ in range(payload):
            abs(-1)

    def loud(payload: int) -> None:
        short(payload)
        raise ValueError("wrong")

    jobs = [job("short")(short), job("loud")(loud)]
    rounds = 4000
    current: list[Watch | None] = [None]
    results: list[Result] = []
    stray: list[BaseException] = []
    locked: list[Watch] = []

    def work() -> None:
        try:
            for n in range(rounds):
                watch = current[0] = Watch()
                results.append(invoke(jobs[n % 2], Task(payload=b"%d" % (n % 400)), watch))
                if watch.expire():  # after the end it must do nothing
                    locked.append(watch)
                for _ in range(50):
                    abs(-1)
        except BaseException as error:  # noqa: BLE001 - what this test is about
            stray.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    raised = 0
    try:
        worker = threading.Thread(target=work)
        worker.start()
        while worker.is_alive():
            watch = current[0]
            raised += watch is not None and watch.expire()
        worker.join()
    finally:
        sys.setswitchinterval(interval)

    assert (stray, locked) == ([], [])
    assert len(results) == rounds
    timed_out = sum(result.timed_out for result in results)
    assert raised > 500
    # Some came too late to matter, and were taken back.
    assert 0 < timed_out <= raised
    assert any(result.ok for result in results)
