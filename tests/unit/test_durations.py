"""Durations as people write them."""

from __future__ import annotations

import pytest

from taskbatch.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("1.5s", 1.5),
        ("1100ms", 1.1),
        ("0s", 0.0),
        ("0", 0.0),
        (" 2s ", 2.0),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "nan", "inf", "infs", "1e3s", "5 m", "5x", "1h30m", "٣s", "5M"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_a_missing_unit_is_pointed_out() -> None:
    with pytest.raises(ValueError, match=r"not a duration: '30' \(a unit is missing\); write 500ms, 30s"):
        parse_duration("30")


def test_a_duration_has_an_end() -> None:
    with pytest.raises(ValueError, match="duration too long"):
        parse_duration("9" * 400 + "d")
