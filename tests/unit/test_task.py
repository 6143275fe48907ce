"""A task's bytes and their stored form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskbatch.task import Task, bare, new_id, parse, stored


def test_bytes_of_a_task_are_read() -> None:
    raw = Task(id="a", type="note", payload=b"\xff\x00", headers={"k": "v"}).SerializeToString()

    task = parse(raw)

    assert task is not None
    assert (task.id, task.type, task.payload, dict(task.headers)) == ("a", "note", b"\xff\x00", {"k": "v"})


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        b"\xff" * 40,
        Task(id="a").SerializeToString(),
        Task(type="note", payload=b"x" * 50).SerializeToString()[:-10],
        b"\x12\x02\xff\xfe",  # a type that is no UTF-8
        b"\x0b" * 5000,  # groups nested too deep
    ],
)
def test_what_is_no_task_is_none(raw: bytes) -> None:
    assert parse(raw) is None


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    task = parse(raw)

    assert task is None or task.type


def test_fields_of_a_newer_producer_survive() -> None:
    raw = Task(type="note").SerializeToString() + b"\xf2\x3f\x03new"  # field 1022

    task = parse(raw)

    assert task is not None
    task.failures = 1
    assert b"\xf2\x3f\x03new" in task.SerializeToString()


@given(st.integers(0, 9), st.binary(max_size=50))
def test_a_stored_entry_comes_apart_again(digit: int, raw: bytes) -> None:
    assert bare(stored(digit, raw)) == (digit, raw)


@pytest.mark.parametrize(
    ("entry", "parts"), [(b"", (0, b"")), (b"2", (2, b"")), (b"\x0aab", (0, b"\x0aab")), (b"\xb2x", (0, b"\xb2x"))]
)
def test_a_foreign_first_byte_is_kept(entry: bytes, parts: tuple[int, bytes]) -> None:
    assert bare(entry) == parts


def test_more_than_nine_crashes_are_nine() -> None:
    assert stored(12, b"x") == b"9x"


def test_ids_differ() -> None:
    assert len({new_id() for _ in range(1000)}) == 1000
    assert len(new_id()) == 32
