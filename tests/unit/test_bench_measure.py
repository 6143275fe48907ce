"""The arithmetic of the benchmarks: a wrong median would be believed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from bench.measure import FailedError, Samples, Usage, clean_environment, in_turn, parse_usage, run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_median_is_the_middle_one_and_the_spread_is_kept() -> None:
    samples = Samples([3.0, 100.0, 1.0])

    assert (samples.median, samples.lowest, samples.highest) == (3.0, 1.0, 100.0)


def test_seconds_become_a_rate() -> None:
    assert Samples([2.0, 4.0]).per(20_000).values == [10_000.0, 5_000.0]
    assert Samples([0.25]).times(1000).values == [250.0]


def test_a_ratio_is_of_medians() -> None:
    assert Samples([1.0, 6.0, 50.0]).ratio(Samples([2.0, 3.0, 4.0])) == 2.0


def test_what_spawn_says_is_read() -> None:
    assert parse_usage("0.5 0.25 2048 0\n", "said") == Usage(seconds=0.5, cpu=0.25, peak=2.0, output="said")
    assert parse_usage("0.5 0.25 2048 1\n") is None
    assert parse_usage("0.5 0.25 2048 -9\n") is None


def test_candidates_take_turns_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []

    def candidate(name: str) -> dict[str, float]:
        calls.append(name)
        return {"s": float(len(calls))}

    gathered = in_turn({"a": lambda: candidate("a"), "b": lambda: candidate("b")}, 2)

    assert calls == ["a", "b", "a", "b", "a", "b"]
    assert gathered["a"]["s"].values == [3.0, 5.0]
    assert gathered["b"]["s"].values == [4.0, 6.0]


def test_a_program_is_measured_with_what_it_prints(tmp_path: Path) -> None:
    usage = run([sys.executable, "-c", "import time; time.sleep(0.1); print('x' * 3)"], clean_environment(), tmp_path)

    assert usage.output == "xxx\n"
    assert usage.seconds >= 0.1
    assert usage.peak > 1


def test_the_memory_of_who_measures_is_not_counted(tmp_path: Path) -> None:
    ballast = bytearray(200 * 1024 * 1024)

    usage = run([sys.executable, "-c", "pass"], clean_environment(), tmp_path)

    assert len(ballast) > 0
    assert usage.peak < 100


def test_a_program_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="no such customer"):
        run([sys.executable, "-c", "raise SystemExit('no such customer')"], clean_environment(), tmp_path)


def test_what_would_steer_the_programs_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKBATCH_CONCURRENCY", "1")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("ANYTHING_ELSE", "1")

    kept = clean_environment()

    assert "ANYTHING_ELSE" in kept
    assert not {"TASKBATCH_CONCURRENCY", "REDIS_URL", "PYTHONDONTWRITEBYTECODE"} & kept.keys()
