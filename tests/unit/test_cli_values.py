"""Values as people write them: on the command line, in variables, in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from taskbatch.cli.limits import shown_limit, stored_limit
from taskbatch.cli.secrets import secret
from taskbatch.cli.text import duration, table
from taskbatch.cli.types import Count, Duration, Listed
from taskbatch.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_durations_become_seconds() -> None:
    assert Duration()("500ms") == 0.5
    assert Duration()("5m") == 300.0
    assert Duration(optional=True)("none") is None


@pytest.mark.parametrize("text", ["5", "none", "-1s", "soon", ""])
def test_what_is_no_duration_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.UsageError, match="not a duration"):
        Duration()(text)


def test_numbers_have_a_least_value() -> None:
    assert Count(1)("7") == 7
    assert Count(1, optional=True)("none") is None
    for text in ("0", "-1", "1.5", "x", "none", "٣"):
        with pytest.raises(click.UsageError, match="not a whole number from 1"):
            Count(1)(text)


def test_variables_hold_lists_with_commas() -> None:
    assert Listed("name").split_envvar_value("mail, reports,,") == ["mail", "reports"]


def test_a_limit_is_stored_in_milliseconds_and_shown_as_it_was_written() -> None:
    assert stored_limit("50/1s") == "50 1000"
    assert stored_limit("5/500ms") == "5 500"
    assert stored_limit("none") == ""
    assert shown_limit("50 1000") == "50/1s"
    assert shown_limit("100 60000") == "100/1m"
    assert shown_limit("\x1b[2J") == "unreadable: \\x1b[2J"


def test_a_bad_limit_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match="rate limit"):
        stored_limit("50 a second")


def test_a_secret_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "one")
    assert secret("SOME_SECRET") == "one"


def test_a_secret_comes_from_a_file_without_its_last_newline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b" two\nlines \n")
    monkeypatch.setenv("SOME_SECRET_FILE", str(file))

    assert secret("SOME_SECRET") == " two\nlines "


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "")
    monkeypatch.setenv("SOME_SECRET_FILE", "")
    assert secret("SOME_SECRET") is None


def test_a_secret_in_both_ways_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "one")
    monkeypatch.setenv("SOME_SECRET_FILE", "two")
    with pytest.raises(click.UsageError, match="SOME_SECRET and SOME_SECRET_FILE"):
        secret("SOME_SECRET")


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"x" * 70_000], ids=["missing", "binary", "huge"])
def test_a_file_that_holds_no_secret_is_a_configuration_error_without_its_content(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SOME_SECRET_FILE", str(file))

    with pytest.raises(ConfigError, match="SOME_SECRET_FILE") as caught:
        secret("SOME_SECRET")
    assert "xxx" not in str(caught.value)


def test_spans_are_short() -> None:
    assert [duration(s) for s in (0, 0.35, 4.25, 60, 190, 3600, 187200)] == [
        "0ms", "350ms", "4.2s", "1m", "3m 10s", "1h", "2d 4h",
    ]  # fmt: skip


def test_columns_of_numbers_are_aligned_to_the_right() -> None:
    assert table(["queue", "n"], [["a", "5"], ["bcdefg", "1234"]]) == [
        "queue      n",
        "a          5",
        "bcdefg  1234",
    ]
