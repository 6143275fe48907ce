"""What a payload becomes on the wire, and what a job is given of it."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal, TypedDict

import pytest

from taskbatch.conversion import UnsupportedError
from taskbatch.payload import PayloadError, decoder, encode
from taskbatch.task import Task


class Priority(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True)
class Address:
    email: str
    name: str | None = None


@dataclass(frozen=True)
class Mail:
    to: list[Address]
    subject: str
    priority: Priority = Priority.LOW
    copies: dict[str, Address] = field(default_factory=dict)
    due: datetime | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


@dataclass(frozen=True)
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            msg = "number must be even"
            raise ValueError(msg)


class Options(TypedDict):
    depth: int


def read(annotation: Any, payload: bytes, content_type: str = "") -> Any:
    return decoder(annotation)(payload, content_type)


@pytest.mark.parametrize(
    ("annotation", "payload", "value"),
    [
        (dict, b'{"a": [1, null]}', {"a": [1, None]}),
        (dict[str, Any], b'{"a": 1}', {"a": 1}),
        (dict[str, int], b'{"a": 1}', {"a": 1}),
        (Mapping[str, float], b'{"a": 1}', {"a": 1.0}),
        (list, b"[1, 2]", [1, 2]),
        (list[str], b'["a"]', ["a"]),
        (Sequence[int], b"[1]", [1]),
        (tuple[int, str], b'[1, "a"]', (1, "a")),
        (tuple[int, ...], b"[1, 2, 3]", (1, 2, 3)),
        (int, b"5", 5),
        (float, b"5", 5.0),
        (bool, b"true", True),
        (None, b"null", None),
        (str | None, b'"a"', "a"),
        (str | None, b"", None),
        (int | str, b'"5"', "5"),
        (Literal["a", "b"], b'"b"', "b"),
        (Options, b'{"depth": 1}', {"depth": 1}),
        (Any, b"", None),
        (object, '"\u00fc"'.encode(), "ü"),
        (Priority, b'"high"', Priority.HIGH),
        (date, b'"2024-02-29"', date(2024, 2, 29)),
        (datetime, b'"2024-02-29T12:00:00Z"', datetime(2024, 2, 29, 12, tzinfo=timezone.utc)),
    ],
)
def test_json_is_read_as_what_the_annotation_names(annotation: Any, payload: bytes, value: Any) -> None:
    result = read(annotation, payload)

    assert result == value
    assert type(result) is type(value)


def test_a_dataclass_is_read_field_by_field() -> None:
    payload = b"""{"to": [{"email": "a@b.c"}, {"email": "d@e.f", "name": "D"}], "subject": "hi",
                   "priority": "high", "copies": {"boss": {"email": "g@h.i"}}, "due": "2024-01-02T03:04:05+01:00"}"""

    assert read(Mail, payload) == Mail(
        to=[Address("a@b.c"), Address("d@e.f", "D")],
        subject="hi",
        priority=Priority.HIGH,
        copies={"boss": Address("g@h.i")},
        due=datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))),
    )


def test_a_dataclass_may_hold_its_own_kind() -> None:
    assert read(Tree, b'{"name": "a", "children": [{"name": "b"}]}') == Tree("a", [Tree("b")])


@pytest.mark.parametrize(
    ("annotation", "payload", "message"),
    [
        (Mail, b'{"subject": "hi"}', "to: missing"),
        (Mail, b'{"to": [], "subject": "hi", "bcc": 1}', "bcc: unknown field"),
        (
            Mail,
            b'{"to": [{"email": "a"}, {"email": 5}], "subject": "x"}',
            "to[1].email: expected a string, got an integer",
        ),
        (Mail, b'{"to": [{"email": "a", "x": 1}], "subject": "x"}', "to[0].x: unknown field"),
        (Mail, b'{"to": {}, "subject": "x"}', "to: expected a list, got an object"),
        (Mail, b'{"to": [], "subject": "x", "copies": {"boss": {}}}', "copies.boss.email: missing"),
        (
            Mail,
            b'{"to": [], "subject": "x", "priority": "urgent"}',
            "priority: expected one of 'low', 'high', got a string",
        ),
        (Mail, b'{"to": [], "subject": "x", "due": "tomorrow"}', "due: expected an ISO 8601 datetime, got a string"),
        (Mail, b'{"to": [], "subject": "x", "weight": true}', "weight: expected a number, got true or false"),
        (Mail, b"[]", "payload: expected an object, got a list of 0"),
        (Mail, b"", "payload: expected an object, got null"),
        (Even, b'{"number": 3}', "payload: number must be even"),
        (dict, b"[1]", "payload: expected an object, got a list of 1"),
        (list, b"{}", "payload: expected a list, got an object"),
        (int, b"true", "payload: expected an integer, got true or false"),
        (int, b"1.0", "payload: expected an integer, got a number"),
        (str, b"5", "payload: expected a string (plain text needs the content type text/plain)"),
        (tuple[int, int], b"[1]", "payload: expected a list of 2, got a list of 1"),
        (Literal["a"], b'"b"', "payload: expected one of 'a', got a string"),
        (int | Address, b'{"name": "x"}', "payload: fits none of"),
        (float, b"1" + b"0" * 400, "payload: expected a number in the range of a float, got an integer"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(annotation: Any, payload: bytes, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        read(annotation, payload)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{", "the payload is not JSON: Expecting property name"),
        (b"NaN", "NaN is not a number JSON knows"),
        (b"[-Infinity]", "-Infinity is not a number JSON knows"),
        (b"1e999", "a number is too large"),
        (b"1" * 5000, "the payload is not JSON: Exceeds the limit"),
        (b"[" * 100_000, "the payload is not JSON"),
        (b"\xff\xfe", "the payload is not UTF-8 at byte 0"),
        (b"{}{}", "the payload is not JSON: Extra data"),
    ],
)
def test_what_is_not_json_is_a_bad_payload(payload: bytes, message: str) -> None:
    with pytest.raises(PayloadError, match=re.escape(message)):
        read(Any, payload)


def test_a_tree_that_is_too_deep_is_a_bad_payload() -> None:
    deep = b'{"name": "a", "children": [' * 400 + b'{"name": "a"}' + b"]}" * 400

    with pytest.raises(PayloadError, match=r"nested too deeply|not JSON"):
        read(Tree, deep)


def test_an_error_never_quotes_a_value() -> None:
    for annotation, payload in (
        (int, b'"hunter2"'),
        (Mail, b'{"to": "hunter2", "subject": ""}'),
        (Priority, b'"hunter2"'),
    ):
        with pytest.raises(PayloadError) as caught:
            read(annotation, payload)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(PayloadError) as caught:
        read(Task, b'{"failures": "hunter2"}')
    assert str(caught.value) == "the payload is not a taskbatch.v1.Task: Failed to parse failures field"


def test_bytes_are_given_as_they_are_whatever_they_are_called() -> None:
    assert read(bytes, b"\xff\x00", "application/json") == b"\xff\x00"


@pytest.mark.parametrize(
    ("payload", "content_type"),
    [
        (b'"hello"', ""),
        (b'"hello"', "application/json; charset=utf-8"),
        (b"hello", "text/plain"),
        (b"hello", "text/csv"),
    ],
)
def test_a_string_comes_as_json_or_as_text(payload: bytes, content_type: str) -> None:
    assert read(str, payload, content_type) == "hello"


def test_text_is_a_string_for_a_job_that_takes_anything() -> None:
    assert read(Any, b"5", "text/plain") == "5"
    assert read(str | None, b"5", "text/plain; charset=utf-8") == "5"


@pytest.mark.parametrize("content_type", ["application/x-protobuf", "application/protobuf", "application/octet-stream"])
def test_a_message_is_read_from_binary(content_type: str) -> None:
    message = Task(id="1", type="inner")

    assert read(Task, message.SerializeToString(), content_type) == message


def test_a_message_is_read_from_json_otherwise() -> None:
    assert read(Task, b'{"id": "1", "enqueuedAtMs": "5"}') == Task(id="1", enqueued_at_ms=5)


@pytest.mark.parametrize(
    ("payload", "content_type", "message"),
    [
        (b"\xff\xff", "application/x-protobuf", "the payload is not a taskbatch.v1.Task in binary"),
        (b'{"what": 1}', "", 'has no field named "what"'),
        (b"{", "", "Failed to load JSON"),
        (b"\xff", "", "not UTF-8"),
    ],
)
def test_what_is_no_such_message_is_a_bad_payload(payload: bytes, content_type: str, message: str) -> None:
    with pytest.raises(PayloadError, match=message):
        read(Task, payload, content_type)


@dataclass
class Unreadable:
    when: timedelta


@dataclass
class Unresolvable:
    when: Nowhere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "annotation", [set, timedelta, Unreadable, Unresolvable, dict[int, str], list[bytes], type("Foreign", (), {})]
)
def test_an_annotation_that_no_json_can_become_is_refused_when_the_decoder_is_built(annotation: Any) -> None:
    with pytest.raises(UnsupportedError):
        decoder(annotation)


@pytest.mark.parametrize(
    ("value", "payload", "content_type"),
    [
        ({"a": [1, None, True], "b": "ü"}, '{"a":[1,null,true],"b":"ü"}'.encode(), ""),
        (None, b"null", ""),
        (5, b"5", ""),
        ((1, 2), b"[1,2]", ""),
        ("hello", b"hello", "text/plain"),
        (b"\x00", b"\x00", "application/octet-stream"),
        (bytearray(b"\x00"), b"\x00", "application/octet-stream"),
        (Address("a@b.c"), b'{"email":"a@b.c","name":null}', ""),
        (Task(id="1"), b"\n\x011", "application/x-protobuf"),
        ({"at": date(2024, 2, 29), "is": Priority.HIGH}, b'{"at":"2024-02-29","is":"high"}', ""),
    ],
)
def test_what_a_producer_gives_becomes_bytes_and_a_content_type(value: Any, payload: bytes, content_type: str) -> None:
    assert encode(value) == (payload, content_type)


def test_what_was_encoded_is_decoded_to_the_same() -> None:
    mail = Mail([Address("a@b.c")], "ü", due=datetime(2024, 1, 1, tzinfo=timezone.utc), copies={"x": Address("y")})
    for annotation, value in (
        (Mail, mail),
        (str, "hello"),
        (Any, "hello"),
        (bytes, b"\xff"),
        (Task, Task(id="ü")),
        (list, []),
    ):
        assert decoder(annotation)(*encode(value)) == value


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "value", [math.nan, {"a": {1, 2}}, object(), _circle(), "\ud800", {"a": "\ud800"}, {(1, 2): 3}]
)
def test_what_cannot_be_written_is_refused(value: Any) -> None:
    with pytest.raises(PayloadError, match="the payload cannot be written"):
        encode(value)
