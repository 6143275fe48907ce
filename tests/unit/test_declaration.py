"""Declaring jobs: what a declaration holds, and what is refused where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskbatch
import taskbatch.declaration
from taskbatch.declaration import Backoff, Job, RateLimit, job
from taskbatch.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def test_a_declared_job_has_its_limits_and_can_be_called_as_the_function_it_was() -> None:
    @job("sum.up", timeout=30, max_attempts=3, rate_limit=RateLimit("100/1m"), backoff=Backoff(1, 60))
    def add(left: int, right: int) -> int:
        return left + right

    assert add(1, right=2) == 3
    assert (add.name, add.timeout, add.timeout_declared, add.max_attempts) == ("sum.up", 30.0, True, 3)
    assert (add.rate_limit, add.limit_name) == (RateLimit("100/1m"), "sum.up")
    assert (add.backoff.base, add.backoff.maximum) == (1, 60)


def test_what_is_not_said_has_a_default() -> None:
    plain = job("plain")(print)

    assert (plain.timeout, plain.timeout_declared, plain.max_attempts) == (300.0, False, 5)
    assert (plain.backoff, plain.rate_limit, plain.limit_name) == (Backoff(10.0, 3600.0), None, "plain")


def test_a_declaration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        job("plain")(print).timeout = 1.0  # type: ignore[misc]


def test_the_decorator_is_what_the_package_exports_also_after_its_module_was_imported() -> None:
    assert taskbatch.job is taskbatch.declaration.job
    assert taskbatch.RateLimit is RateLimit


@pytest.mark.parametrize(
    ("rate", "limit", "period"),
    [("100/1m", 100, 60.0), ("50/1s", 50, 1.0), ("5/500ms", 5, 0.5), ("100/m", 100, 60.0), ("1/30d", 1, 2592000.0)],
)
def test_a_rate_is_a_count_over_a_duration(rate: str, limit: int, period: float) -> None:
    assert (RateLimit(rate).limit, RateLimit(rate).period) == (limit, period)


@pytest.mark.parametrize(
    "rate", ["", "100", "/1m", "100/", "0/1s", "-1/1s", "1.5/1s", "5/0s", "5/0.1ms", "x/1s", "5/1y"]
)
def test_a_rate_that_says_nothing_is_refused(rate: str) -> None:
    with pytest.raises(ConfigError, match="rate limit"):
        RateLimit(rate)


@pytest.mark.parametrize(("rate", "burst"), [("50/1s", 14), ("100/1m", 2), ("8/1s", 3), ("1/1h", 2)])
def test_a_smooth_limit_absorbs_a_quarter_of_a_second_of_jitter(rate: str, burst: int) -> None:
    assert RateLimit(rate, algorithm="gcra").burst == burst


def test_a_burst_that_is_given_is_taken() -> None:
    assert RateLimit("50/1s", algorithm="gcra", burst=1).burst == 1
    assert RateLimit("50/1s").burst is None


def test_jobs_may_share_a_limit_by_its_name() -> None:
    shared = RateLimit("10/1s", name="crm.api")

    assert job("crm.push", rate_limit=shared)(print).limit_name == "crm.api"
    assert job("crm.pull", rate_limit=shared)(print).limit_name == "crm.api"


async def _asynchronous() -> None: ...


def _generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: job("no spaces please"), "job name 'no spaces please' is not valid"),
        (lambda: job(""), "job name '' is not valid"),
        (lambda: job("x" * 129), "is not valid: 1 to 128"),
        (lambda: job("x\n"), "is not valid"),
        (lambda: job(_generator), "is not valid"),  # type: ignore[arg-type]
        (lambda: job("a", timeout=0), "timeout is a number of seconds above 0, not 0"),
        (lambda: job("a", timeout=float("nan")), "timeout is a number"),
        (lambda: job("a", timeout=float("inf")), "timeout is a number"),
        (lambda: job("a", timeout="30s"), "timeout is a number of seconds above 0, not '30s'"),  # type: ignore[arg-type]
        (lambda: job("a", max_attempts=0), "max_attempts is a whole number from 1, not 0"),
        (lambda: job("a", max_attempts=True), "max_attempts is a whole number"),
        (lambda: job("a", rate_limit="100/1m"), r"as in RateLimit\('100/1m'\)"),  # type: ignore[arg-type]
        (lambda: job("a", backoff=3), "backoff is a Backoff"),  # type: ignore[arg-type]
        (lambda: job("a")(_asynchronous), "async function cannot be a job"),
        (lambda: job("a")(_generator), "generator cannot be a job"),
        (lambda: job("a")(3), "3 cannot be called"),  # type: ignore[arg-type]
        (lambda: job("a")(job("b")(print)), "already the job 'b'"),
        (lambda: RateLimit("5/1s", algorithm="leaky"), "'fixed' or 'gcra', not 'leaky'"),  # type: ignore[arg-type]
        (lambda: RateLimit("5/1s", burst=3), "burst needs algorithm='gcra'"),
        (lambda: RateLimit("5/1s", algorithm="gcra", burst=0), "burst is a whole number from 1"),
        (lambda: RateLimit("5/1s", name="two words"), "rate limit name 'two words' is not valid"),
        (lambda: Backoff(0), "backoff needs 0 < base <= maximum"),
        (lambda: Backoff(10, 5), "backoff needs 0 < base <= maximum"),
        (lambda: Backoff(1, float("inf")), "backoff needs"),
    ],
)
def test_a_wrong_declaration_is_refused_in_one_clear_line(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        declare()
    assert "\n" not in str(caught.value)


def test_the_place_of_a_job_is_the_line_of_its_function() -> None:
    declared: Job = job("plain")(_generator_free)

    assert declared.place == f"{__file__}:{_generator_free.__code__.co_firstlineno}"


def _generator_free() -> None: ...
