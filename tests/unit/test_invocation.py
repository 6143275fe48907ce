"""Calling a job: whatever it does, a value comes back."""

from __future__ import annotations

import gc
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from dis import opname
from queue import SimpleQueue
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

    assert "returned a coroutine that nobody runs" in run(lambda: nobody_awaits()).error  # noqa: PLW0108 - itself it would be refused
    assert "returned a generator that nobody runs" in run(lambda: (x for x in "ab")).error


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
        except BaseException as error:
            raise ValueError("gave up") from error

    watch = Watch()
    thread = expire_soon(watch)

    result = run(translates, watch=watch)

    thread.join()
    assert (result.error, result.timed_out) == ("timed out after 5 s: ValueError: gave up", True)


def test_a_job_that_shrugs_its_timeout_off_and_returns_has_succeeded() -> None:
    def shrugs() -> None:
        with suppress(JobTimeout):
            spin()

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

    def expire_twice() -> None:
        answers.extend((watch.expire(), watch.expire()))

    def over_its_timeout() -> None:
        thread = threading.Thread(target=expire_twice)
        thread.start()
        try:
            spin()
        except JobTimeout:
            thread.join()

    run(over_its_timeout, watch=watch)
    answers.append(watch.expire())

    assert answers == [False, True, False, False]
    late = Watch()
    run(lambda: None, watch=late)
    assert (late.expire(), late.expired) == (False, False)


OURS = ("taskbatch/invocation.py", "taskbatch/watch.py", "taskbatch/failure.py")
# Where CPython keeps the books of its exceptions it delivers none, and one from a tracer confuses it.
BOOKKEEPING = {"PUSH_EXC_INFO", "POP_EXCEPT", "RERAISE", "COPY"}


def invoke_traced(at: int, act: Callable[[str], None], *arguments: Any) -> tuple[Result, int]:
    """Invoke, and before instruction number `at` of ours call `act` with the name of its function.

    Return also how many there were.
    """
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.endswith(OURS):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and opname[frame.f_code.co_code[frame.f_lasti]] not in BOOKKEEPING:
            count += 1
            if count == at:
                act(frame.f_code.co_name)
        return trace

    sys.settrace(trace)
    try:
        result = invoke(*arguments)
    finally:
        sys.settrace(None)
    return result, count


@pytest.mark.parametrize("ends", ["returns", "returns a value", "raises", "bad payload"])
def test_a_timeout_at_any_instruction_of_ours_is_still_a_result(ends: str) -> None:
    def ending() -> int | None:
        if ends == "raises":
            raise ValueError("wrong")
        return 5 if ends == "returns a value" else None

    def typed(payload: dict[str, int]) -> None: ...

    declared = job("it", timeout=5)(typed if ends == "bad payload" else ending)
    task = Task(payload=b"[]")
    invoke(declared, task, Watch())  # what is imported late is imported now
    _, instructions = invoke_traced(0, print, declared, task, Watch())
    watches: SimpleQueue[Watch | None] = SimpleQueue()
    answers: SimpleQueue[bool] = SimpleQueue()

    def expire_each() -> None:
        while (watch := watches.get()) is not None:
            answers.put(watch.expire())

    # From another thread, as in a run; the answer is waited for, and the exception arrives during that.
    thread = threading.Thread(target=expire_each)
    thread.start()
    interrupted: list[tuple[str, Result]] = []
    where = ""
    for at in range(1, instructions + 1):
        watch = Watch()

        def act(name: str, watch: Watch = watch) -> None:
            nonlocal where
            where = name
            watches.put(watch)
            answers.get()

        result, _ = invoke_traced(at, act, declared, task, watch)

        assert isinstance(result, (Succeeded, Failed, BadPayload))
        assert watch.expire() is False
        if watch.expired:
            interrupted.append((where, result))
        _settle()
    watches.put(None)
    thread.join()
    assert len(interrupted) > 30
    # When the job has returned it has succeeded, and that is final.
    afterwards = [result.ok for name, result in interrupted if name in {"_judged", "disarm"}]
    assert afterwards
    assert all(ok is ends.startswith("returns") for ok in afterwards)


def _settle() -> None:
    """Give a stray exception a thousand places to show itself."""
    for _ in range(1000):
        abs(-1)


def test_thousands_of_timeouts_that_race_with_the_end_of_their_job_do_no_harm() -> None:  # noqa: C901 - one story
    rounds = 5000
    started: SimpleQueue[Watch] = SimpleQueue()  # in C: a lock of Python's own could be left locked
    current = Watch()
    results: list[Result] = []
    stray: list[BaseException] = []
    too_late: list[Watch] = []

    def short(payload: int) -> None:
        started.put(current)
        for _ in range(payload):
            abs(-1)

    def loud(payload: int) -> None:
        short(payload)
        raise ValueError("wrong")

    jobs = [job("short")(short), job("loud")(loud)]

    def work() -> None:
        nonlocal current
        try:
            for n in range(rounds):
                current = watch = Watch()
                results.append(invoke(jobs[n % 2], Task(payload=b"%d" % (n % 97)), watch))
                for _ in range(50):  # places for a stray exception to show itself
                    abs(-1)
                if watch.expire():
                    too_late.append(watch)
        except BaseException as error:  # noqa: BLE001 - what this test is about
            stray.append(error)

    worker = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    # A timeout that arrives in somebody's callback of the collector is printed and forgotten by Python.
    gc.disable()
    raised = 0
    try:
        worker.start()
        for n in range(rounds):
            watch = started.get(timeout=10)
            for _ in range(n % 89):
                abs(-1)
            raised += watch.expire()
        worker.join()
    finally:
        gc.enable()
        sys.setswitchinterval(interval)

    assert (stray, too_late) == ([], [])
    assert len(results) == rounds
    timed_out = sum(result.timed_out for result in results)
    assert 100 < timed_out <= raised < rounds
    assert sum(result.ok for result in results) > 100
