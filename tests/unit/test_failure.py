"""What is kept of an exception."""

from __future__ import annotations

from http.client import HTTPException

import pytest

from taskbatch.failure import error_text, one_line, traceback_text


class _Hostile(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise SystemExit

    __repr__ = __str__


class _Meta(type):
    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise KeyboardInterrupt


class _Nameless(Exception, metaclass=_Meta):  # noqa: N818
    pass


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001
        return caught


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("wrong"), "ValueError: wrong"),
        (ValueError(), "ValueError"),
        (SystemExit(0), "SystemExit: 0"),
        (KeyError("a"), "KeyError: 'a'"),
        (HTTPException("wrong"), "http.client.HTTPException: wrong"),
        (ValueError("two\nlines\tand \x1b[31mred\u202e"), "ValueError: two\\nlines\\tand \\x1b[31mred\\u202e"),
        (ValueError("grün ✓"), "ValueError: grün ✓"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
        (_Hostile(), f"{__name__}._Hostile: (its text cannot be had)"),
        (_Nameless("x"), "an exception without a name: x"),
    ],
)
def test_an_error_is_one_printable_line(error: BaseException, text: str) -> None:
    assert error_text(error) == text
    assert error_text(error).isprintable()


@pytest.mark.parametrize("character", ["x", "ü", "✓", "\0", "\ud800"])
def test_a_huge_message_is_cut_at_four_kibibytes(character: str) -> None:
    text = one_line(character * 10_000_000)

    assert 4090 <= len(text.encode()) <= 4096


def test_a_traceback_ends_with_what_happened_and_says_what_led_to_it() -> None:
    def open_it() -> None:
        try:
            raise FileNotFoundError("no such file")
        except FileNotFoundError as error:
            raise ValueError("cannot start") from error

    with pytest.raises(ValueError, match="cannot start") as caught:
        open_it()
    text = traceback_text(caught.value)

    first, then = text.split("\nThis led to:\n\n")
    assert "in open_it" in first
    assert first.endswith("FileNotFoundError: no such file\n")
    assert then.endswith("ValueError: cannot start\n")


def test_a_traceback_keeps_its_end_within_eight_kibibytes() -> None:
    def deep(n: int) -> None:
        if n:
            deeper(n - 1)
        raise ValueError("x" * 100_000)

    def deeper(n: int) -> None:
        deep(n)

    with pytest.raises(ValueError, match="xxx") as caught:
        deep(200)
    text = traceback_text(caught.value)

    assert len(text.encode()) <= 8192
    assert "in deep" in text
    assert text.rstrip().endswith("xxx")


def test_errors_that_cause_each_other_end() -> None:
    one, other = raised(ValueError("one")), raised(ValueError("other"))
    one.__cause__, other.__cause__ = other, one

    assert traceback_text(one).count("ValueError") >= 2


def test_a_traceback_of_a_hostile_error_is_still_a_traceback() -> None:
    assert "(its text cannot be had)" in traceback_text(raised(_Hostile()))
    assert "an exception without a name" in traceback_text(raised(_Nameless()))
