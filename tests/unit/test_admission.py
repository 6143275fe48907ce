"""What becomes of a task that was just claimed."""

from __future__ import annotations

import pytest

from taskbatch.admission import admit, parsed
from taskbatch.declaration import Job
from taskbatch.outcome import Dead, Release
from taskbatch.task import MAX_TASK_BYTES, Task

NOW = 1_000_000
JOB = Job("note", print, timeout=30.0, timeout_declared=True)
JOBS = {"note": JOB}


def claimed(n: int = 0, **fields: object) -> object:
    raw = Task(**{"type": "note", **fields}).SerializeToString()  # type: ignore[arg-type]
    return parsed(n, raw if n == 0 else b"%d" % n + raw, NOW, "")


def test_a_task_of_a_known_type_runs() -> None:
    held = claimed()

    assert admit(held, JOBS, NOW, None) is JOB
    assert held.kind == "note"


@pytest.mark.parametrize("n", [1, 2])
def test_one_with_a_crash_digit_is_the_same_task(n: int) -> None:
    held = claimed(n)

    assert admit(held, JOBS, NOW, None) is JOB
    assert held.digit == n


@pytest.mark.parametrize("raw", [b"", b"junk", Task(id="a").SerializeToString()])
def test_what_is_no_task_is_dead(raw: bytes) -> None:
    outcome = admit(parsed(0, raw, NOW, ""), JOBS, NOW, None)

    assert isinstance(outcome, Dead)
    assert outcome.reason == "undecodable"


def test_a_task_too_large_is_not_even_parsed() -> None:
    held = parsed(0, Task(type="note", payload=b"x" * MAX_TASK_BYTES).SerializeToString(), NOW, "")

    outcome = admit(held, JOBS, NOW, None)

    assert held.task is None
    assert isinstance(outcome, Dead)
    assert outcome.reason == "oversize"


@pytest.mark.parametrize(
    ("expires", "reason"), [(0, None), (NOW + 1, None), (NOW, "expired"), (NOW - 1, "expired"), (1, "expired")]
)
def test_an_expired_task_does_not_run(expires: int, reason: str | None) -> None:
    verdict = admit(claimed(expires_at_ms=expires), JOBS, NOW, None)

    assert (verdict.reason if isinstance(verdict, Dead) else None) == reason


def test_an_unknown_type_goes_back_and_its_name_is_no_label() -> None:
    held = claimed(type="other", unroutable=2)

    assert admit(held, JOBS, NOW, None) == Release(20.0, "unknown", "unroutable")
    assert held.kind == "unknown"


def test_an_expired_task_of_unknown_type_is_expired() -> None:
    verdict = admit(claimed(type="other", expires_at_ms=1), JOBS, NOW, None)

    assert isinstance(verdict, Dead)
    assert verdict.reason == "expired"


@pytest.mark.parametrize(("left", "runs"), [(None, True), (30.0, True), (29.9, False), (0.0, False), (-5.0, False)])
def test_a_declared_timeout_must_fit_into_what_is_left(left: float | None, runs: bool) -> None:
    verdict = admit(claimed(), JOBS, NOW, left)

    if runs:
        assert verdict is JOB
    else:
        assert verdict == Release(max(0.001, left or 0.0), "no_time")


def test_a_timeout_nobody_declared_need_not_fit() -> None:
    job = Job("note", print, timeout=300.0)

    assert admit(claimed(), {"note": job}, NOW, 0.5) is job
