"""What a producer puts on the wire, and what it refuses before anything is sent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from taskbatch import Client, job
from taskbatch.client import Enqueued, EnqueueError, Item
from taskbatch.errors import ConfigError, PayloadTooLargeError, UnreachableError
from taskbatch.message import MAX_PAYLOAD, Template
from taskbatch.payload import PayloadError
from taskbatch.task import MAX_TASK_BYTES, Task

NOWHERE = "redis://127.0.0.1:1/0"


def wire(item: Item) -> Task:
    """Return the task a run would read."""
    message = Template(item, "taskbatch", MAX_PAYLOAD).message(item.payload, 1_700_000_000_000, 0)
    return Task.FromString(message.raw)


def test_a_plain_task() -> None:
    task = wire(Item("email.send", {"to": "Zoë"}, id="id1"))

    assert task == Task(id="id1", type="email.send", payload='{"to":"Zoë"}'.encode(), enqueued_at_ms=1_700_000_000_000)


def test_all_fields() -> None:
    item = Item(
        "email.send", "{}", id="id1", unique_key="k", limit_key="tenant", max_attempts=3,
        headers={"traceparent": "00-1"}, content_type="application/json",
    )  # fmt: skip

    message = Template(item, "taskbatch", MAX_PAYLOAD).message(item.payload, 1, 2)

    assert Task.FromString(message.raw) == Task(
        id="id1", type="email.send", payload=b"{}", content_type="application/json", enqueued_at_ms=1,
        expires_at_ms=2, max_attempts=3, limit_key="tenant", unique_key="k", headers={"traceparent": "00-1"},
    )  # fmt: skip


def test_the_id_comes_first_on_the_wire() -> None:
    template = Template(Item("t", headers={"a": "b"}), "taskbatch", MAX_PAYLOAD)

    message = template.message({"x": 1}, 1, 1)

    assert message.raw.startswith(b"\n\x20" + message.id.encode())


def test_tasks_of_one_template_share_nothing_but_what_they_should() -> None:
    template = Template(Item("t", content_type=None), "taskbatch", MAX_PAYLOAD)

    first, second = template.message("text", 1, 9), template.message({"x": 1}, 2, 0)

    assert first.id != second.id
    assert Task.FromString(first.raw) == Task(
        id=first.id, type="t", payload=b"text", content_type="text/plain", enqueued_at_ms=1, expires_at_ms=9
    )
    assert Task.FromString(second.raw) == Task(id=second.id, type="t", payload=b'{"x":1}', enqueued_at_ms=2)


def test_a_job_stands_for_its_name() -> None:
    @job("report.make")
    def make() -> None: ...

    assert wire(Item(make)).type == "report.make"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", ""),
        ("type", "with space"),
        ("type", "x" * 129),
        ("type", None),
        ("queue", "a/b"),
        ("queue", ""),
        ("delay", -1),
        ("delay", float("nan")),
        ("delay", float("inf")),
        ("delay", "1m"),
        ("expires", 0),
        ("expires", -1),
        ("unique_key", ""),
        ("unique_key", "x" * 1025),
        ("unique_key", 7),
        ("unique_ttl", 0),
        ("limit_key", "x" * 129),
        ("limit_key", "ö" * 65),
        ("limit_key", "a\nb"),
        ("max_attempts", -1),
        ("max_attempts", 2**32),
        ("max_attempts", 1.5),
        ("max_attempts", True),
        ("headers", {"a": 1}),
        ("headers", {"": "x"}),
        ("headers", {"a": "\ud800"}),
        ("id", ""),
        ("id", "x" * 129),
        ("content_type", "x" * 129),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(field: str, value: Any) -> None:
    options = {"type": "t", field: value}

    # A client that tried to send would say that nobody is there.
    with pytest.raises(ConfigError) as caught, Client(NOWHERE) as client:
        client.enqueue(**options)

    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_largest_payload_fits_and_one_byte_more_does_not() -> None:
    assert len(wire(Item("t", b"x" * MAX_PAYLOAD)).payload) == 1024 * 1024

    with pytest.raises(PayloadTooLargeError, match="1048577 bytes"):
        Client(NOWHERE).enqueue("t", b"x" * (MAX_PAYLOAD + 1))


def test_a_client_can_have_a_lower_cap() -> None:
    with pytest.raises(PayloadTooLargeError, match="11 bytes, more than 10"):
        Client(NOWHERE, max_payload=10).enqueue("t", b"x" * 11)


@pytest.mark.parametrize("cap", [0, -1, MAX_PAYLOAD + 1])
def test_a_cap_that_no_run_would_accept_is_refused(cap: int) -> None:
    with pytest.raises(ConfigError, match="max_payload"):
        Client(NOWHERE, max_payload=cap)


def test_every_field_at_its_largest_is_still_a_task_that_runs_accept() -> None:
    most = 13_000
    item = Item("x" * 128, unique_key="u" * 1024, limit_key="l" * 128, id="i" * 128, content_type="c" * 128)
    headers = {"a": "b" * (most - 200)}

    raw = (
        Template(dataclasses.replace(item, headers=headers), "taskbatch", MAX_PAYLOAD)
        .message(b"x" * MAX_PAYLOAD, 2**62, 2**62)
        .raw
    )

    assert len(raw) <= MAX_TASK_BYTES


def test_headers_larger_than_that_are_refused() -> None:
    with pytest.raises(PayloadTooLargeError, match="headers"):
        Client(NOWHERE).enqueue("t", headers={"a": "b" * 16_000})


def test_a_value_without_an_encoding_is_refused() -> None:
    with pytest.raises(PayloadError):
        Client(NOWHERE).enqueue("t", {"when": object()})


def test_nobody_there_is_an_error_that_nothing_was_sent() -> None:
    with pytest.raises(UnreachableError):
        Client(NOWHERE).enqueue("t")
    with pytest.raises(UnreachableError):
        Client(NOWHERE).enqueue("t", expires=5)
    with pytest.raises(UnreachableError):
        Client(NOWHERE).enqueue_many([1, 2], "t")


def test_options_of_many_are_refused_where_they_make_no_sense() -> None:
    client = Client(NOWHERE)

    with pytest.raises(ConfigError, match="unique_key is of one task only"):
        client.enqueue_many([1], "t", unique_key="k")
    with pytest.raises(ConfigError, match="into each Item: queue"):
        client.enqueue_many([Item("t")], queue="q")
    with pytest.raises(ConfigError, match="must be an Item, not a dict"):
        client.enqueue_many([{"a": 1}])


def test_an_enqueued_task_reads_as_its_id() -> None:
    assert f"{Enqueued('id1')}" == "id1"
    assert Enqueued("id1") == ("id1", False)


def test_an_enqueue_error_says_what_is_in_and_what_is_not_known() -> None:
    error = EnqueueError(UnreachableError("gone"), [Enqueued("a")], ["b", "c"])

    assert str(error) == "1 tasks are enqueued, of 2 more it is not known, the rest is not: gone"
    assert str(EnqueueError(UnreachableError("gone"), [], [])) == "0 tasks are enqueued, the rest is not: gone"


def test_the_environment_says_where_redis_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:2/0")
    monkeypatch.setenv("TASKBATCH_REDIS_URL", NOWHERE)

    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/0"):
        Client.from_env().enqueue("t")
