"""How a task becomes the arguments of a job's function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

import taskbatch  # noqa: TC001 - one of the annotations below is resolved
from taskbatch.binding import bind
from taskbatch.errors import ConfigError
from taskbatch.payload import PayloadError
from taskbatch.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    import taskbatch as only_for_type_checkers
    from tests.unit import Nowhere  # type: ignore[attr-defined]

TASK = Task(id="7", type="x", payload=b'{"a": 1}', failures=2)


def call(function: Callable[..., Any], task: Task = TASK) -> Any:
    positional, keyword = bind(function).arguments(task)
    return function(*positional, **keyword)


def payload_and_task(payload: dict[str, int], task: Task) -> Any:
    return payload, task.id


def task_first(task: Task, payload: dict[str, int]) -> Any:
    return payload, task.id


def task_by_another_name(payload: dict[str, int], message: taskbatch.Task) -> Any:
    return payload, message.id


def task_without_annotation(payload, task) -> Any:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return payload, task.id


def task_for_type_checkers(payload: dict[str, int], about: only_for_type_checkers.Task) -> Any:
    return payload, about.id


def task_by_keyword(payload: dict[str, int], retries: int = 3, *, task: Task) -> Any:
    assert retries == 3
    return payload, task.id


def only_by_position(payload: dict[str, int], task: Task, /) -> Any:
    return payload, task.id


def with_the_rest(payload: dict[str, int], task: Task, *args: Any, **kwargs: Any) -> Any:
    assert (args, kwargs) == ((), {})
    return payload, task.id


def unresolvable_where_it_does_not_matter(payload: dict[str, int], task: Task, other: Nowhere = None) -> Any:
    return payload, task.id


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Handler:
    def __call__(self, payload: dict[str, int], task: Task) -> Any:
        return payload, task.id

    def method(self, payload: dict[str, int], task: Task) -> Any:
        return payload, task.id


@pytest.mark.parametrize(
    "function",
    [
        payload_and_task,
        task_first,
        task_by_another_name,
        task_without_annotation,
        task_for_type_checkers,
        task_by_keyword,
        only_by_position,
        with_the_rest,
        unresolvable_where_it_does_not_matter,
        _decorated(payload_and_task),
        Handler(),
        Handler().method,
        functools.partial(payload_and_task),
    ],
)
def test_payload_and_task_go_where_the_signature_wants_them(function: Callable[..., Any]) -> None:
    assert call(function) == ({"a": 1}, "7")


def test_a_function_may_want_the_payload_alone_the_task_alone_or_nothing() -> None:
    assert call(lambda payload: payload) == {"a": 1}
    assert call(lambda task: task.id) == "7"
    assert call(lambda: "nothing") == "nothing"


def test_a_payload_that_is_not_wanted_is_not_read() -> None:
    assert call(lambda: "nothing", Task(payload=b"\xff")) == "nothing"


def test_a_payload_may_be_called_task_if_it_says_what_it_is() -> None:
    def job(task: dict[str, int]) -> Any:
        return task

    assert call(job) == {"a": 1}


def test_what_a_job_does_to_its_task_stays_with_the_job() -> None:
    def job(task: Task) -> None:
        task.failures = 99

    call(job)

    assert TASK.failures == 2


def test_a_payload_that_does_not_fit_is_a_bad_payload() -> None:
    with pytest.raises(PayloadError, match="payload: expected an object, got a list of 0"):
        bind(payload_and_task).arguments(Task(payload=b"[]"))


class Opaque:
    __signature__ = "none"

    def __call__(self) -> None: ...
    def __repr__(self) -> str:
        return "an opaque thing"


def two_payloads(payload: dict[str, int], more: int) -> None: ...
def keyword_only(payload: dict[str, int], *, more: int) -> None: ...
def unresolvable(payload: Nowhere) -> None: ...
def not_a_type(payload: set[int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (two_payloads, "parameter 'more' gets no value: a job takes its payload first"),
        (keyword_only, "parameter 'more' gets no value"),
        (unresolvable, "parameter 'payload': annotation Nowhere cannot be resolved at run time"),
        (not_a_type, r"parameter 'payload': a payload cannot be read as set\[int\]"),
        (Opaque(), "the parameters of an opaque thing cannot be read"),
    ],
)
def test_a_signature_that_no_task_can_fill_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        bind(function)
    assert "\n" not in str(caught.value)
