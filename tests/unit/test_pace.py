"""How much a run claims."""

from __future__ import annotations

import pytest

from taskbatch.pace import Pace


def measured(threads: int, mean: float, max_tasks: int | None = None) -> Pace:
    pace = Pace(threads, max_tasks)
    pace.measured(mean * 100, 100)
    return pace


def test_the_first_claim_is_for_free_threads_only() -> None:
    assert Pace(8, None).want(0) == 8
    assert Pace(8, None).want(3) == 5
    assert Pace(8, None).want(8) == 0


@pytest.mark.parametrize(
    ("mean", "in_pool", "want"),
    [
        (0.001, 0, 408),  # 8 threads start 400 of 1 ms in 50 ms
        (0.001, 408, 0),
        (0.001, 500, 0),
        (0.1, 0, 12),
        (1.0, 0, 8),
        (300.0, 8, 0),
        (1e-6, 0, 1008),  # capped
        (0.0, 0, 1008),
    ],
)
def test_ahead_is_what_starts_within_50_ms(mean: float, in_pool: int, want: int) -> None:
    assert measured(8, mean).want(in_pool) == want


def test_k_bounds_what_is_claimed() -> None:
    pace = measured(8, 0.001, max_tasks=10)

    assert pace.want(0) == 10
    pace.admitted = 7
    assert pace.want(0) == 3
    assert not pace.exhausted
    pace.admitted = 10
    assert pace.want(0) == 0
    assert pace.exhausted


def test_without_k_it_is_never_exhausted() -> None:
    assert not Pace(8, None, admitted=10**9).exhausted


def test_a_wrong_guess_ends_claiming_ahead() -> None:
    pace = measured(8, 0.001)

    pace.guessed_wrong()

    assert pace.want(0) == 8


def test_one_odd_task_does_not_turn_the_mean() -> None:
    pace = measured(8, 0.001)

    pace.measured(1.0, 1)

    assert pace.mean == pytest.approx(0.1009)


def test_many_tasks_do() -> None:
    pace = measured(8, 1.0)

    pace.measured(0.032, 32)

    assert pace.mean == pytest.approx(0.001)
