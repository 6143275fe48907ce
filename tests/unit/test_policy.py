"""The decisions, as tables and as properties."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskbatch.declaration import Backoff, Job
from taskbatch.invocation import BadPayload, Failed, Succeeded
from taskbatch.outcome import Ack, Dead, Release, Retry
from taskbatch.policy import (
    decide,
    decide_interrupted,
    decide_unroutable,
    duration_bucket,
    latency_bucket,
    retry_delay,
    unroutable_delay,
)
from taskbatch.task import Task

seeds = st.integers(0, 2**32)
failures = st.integers(0, 2**32 - 1)


def job(max_attempts: int = 5) -> Job:
    return Job("note", print, max_attempts=max_attempts, backoff=Backoff(10.0, 3600.0))


@given(failures, seeds)
def test_a_retry_waits_at_least_a_second_and_at_most_the_maximum(failed: int, seed: int) -> None:
    delay = retry_delay(failed, base=10.0, maximum=3600.0, rng=random.Random(seed))

    assert 1.0 <= delay <= 3600.0


@given(st.integers(1, 8), seeds)
def test_the_ceiling_doubles_with_each_failure(failed: int, seed: int) -> None:
    ceilings = {1: 10.0, 2: 20.0, 3: 40.0, 4: 80.0, 5: 160.0, 6: 320.0, 7: 640.0, 8: 1280.0}

    assert retry_delay(failed, base=10.0, maximum=3600.0, rng=random.Random(seed)) <= ceilings[failed]


def test_jitter_is_full() -> None:
    """Delays are spread over the whole span, or tasks that failed together would come back together."""
    rng = random.Random(1)
    delays = [retry_delay(4, base=10.0, maximum=3600.0, rng=rng) for _ in range(2000)]

    quarters = [sum(low <= delay < low + 20 for delay in delays) for low in (0, 20, 40, 60)]
    assert all(400 < count < 600 for count in quarters), quarters


@given(st.floats(0.001, 1e5), st.floats(0.001, 1e6), failures, seeds)
def test_no_setting_makes_a_delay_that_cannot_be(base: float, extra: float, failed: int, seed: int) -> None:
    delay = retry_delay(failed, base=base, maximum=base + extra, rng=random.Random(seed))

    assert 1.0 <= delay <= max(1.0, base + extra)


@pytest.mark.parametrize(
    ("times", "seconds"), [(0, 5.0), (1, 10.0), (2, 20.0), (9, 2560.0), (10, 3600.0), (2**32 - 1, 3600.0)]
)
def test_an_unknown_type_rests_longer_each_time(times: int, seconds: float) -> None:
    assert unroutable_delay(times) == seconds


def test_a_job_that_returned_is_done() -> None:
    assert decide(Task(failures=99), job(), Succeeded(), random.Random(1)) == Ack()


@pytest.mark.parametrize(
    ("failed_before", "of_task", "of_job", "dies"),
    [
        (0, 0, 5, False),
        (3, 0, 5, False),
        (4, 0, 5, True),
        (99, 0, 5, True),
        (0, 0, 1, True),
        (0, 1, 5, True),
        (4, 7, 5, False),
        (6, 7, 5, True),
    ],
)
def test_the_last_attempt_that_fails_is_the_end(failed_before: int, of_task: int, of_job: int, dies: bool) -> None:
    task = Task(failures=failed_before, max_attempts=of_task)

    outcome = decide(task, job(of_job), Failed("ValueError: no"), random.Random(1))

    assert isinstance(outcome, Dead if dies else Retry)
    assert outcome.error == "ValueError: no"


def test_a_payload_the_job_cannot_take_is_dead_at_once() -> None:
    assert decide(Task(), job(), BadPayload("no JSON"), random.Random(1)) == Dead("failed", "no JSON")


@pytest.mark.parametrize(("before", "dies"), [(0, False), (18, False), (19, True), (25, True)])
def test_the_twentieth_interruption_is_the_last(before: int, dies: bool) -> None:
    outcome = decide_interrupted(Task(interruptions=before))

    if dies:
        assert outcome == Dead("interrupted", f"interrupted {before + 1} times")
    else:
        assert outcome == Release(0.0, "shutdown", "interruptions")


@pytest.mark.parametrize(("before", "dies"), [(0, False), (18, False), (19, True)])
def test_the_twentieth_run_that_knows_no_job_is_the_last(before: int, dies: bool) -> None:
    outcome = decide_unroutable(Task(unroutable=before))

    assert isinstance(outcome, Dead if dies else Release)


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, "0.005"), (0.005, "0.005"), (0.0051, "0.01"), (1.0, "1"), (299.0, "300"), (300.0, "300"), (301.0, "+Inf")],
)
def test_a_duration_falls_into_its_bucket(seconds: float, bucket: str) -> None:
    assert duration_bucket(seconds) == bucket


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, "0.1"), (0.2, "0.5"), (60.0, "60"), (86400.0, "86400"), (1e9, "+Inf")]
)
def test_a_latency_falls_into_its_bucket(seconds: float, bucket: str) -> None:
    assert latency_bucket(seconds) == bucket
