"""From an outcome to what `settle` writes."""

from __future__ import annotations

import pytest

from taskbatch.outcome import Ack, Dead, Outcome, Release, Retry
from taskbatch.settlement import Claimed, reset, settlement
from taskbatch.task import Task, bare, parse

FIELDS = {"id": "a1", "type": "note", "payload": b"\x00\xff", "headers": {"b": "2", "a": "1"}}


def held(n: int = 0, digit: int = 0, *, window: str = "", **fields: object) -> Claimed:
    task = Task(**{**FIELDS, **fields})  # type: ignore[arg-type]
    raw = task.SerializeToString()
    entry = raw if n == 0 else b"%d" % digit + raw
    return Claimed(n, entry, task, kind="note", claimed_ms=10_000, window=window)


def test_an_ack_names_the_exact_bytes() -> None:
    one = held(1, 1)

    done = settlement(one, Ack(), 0.25)

    assert (done.n, done.entry, done.verb, done.stored) == (1, one.entry, "ack", b"")
    assert sorted(done.tally.split()[1:]) == ["duration:0.25:note", "tasks:succeeded:note"]
    assert done.tally.startswith("note ")
    assert done.duration_us == 250_000
    assert done.unique is None


def test_an_ack_gives_the_deduplication_key_back() -> None:
    assert settlement(held(unique_key="order-7"), Ack(), 0.0).unique == ("order-7", "a1")


def test_a_failure_counts_and_resets_the_crash_digit() -> None:
    done = settlement(held(1, 1, failures=2), Retry(1.5, "ValueError: no"), 0.1)

    digit, raw = bare(done.stored)
    task = parse(raw)
    assert done.verb == "schedule"
    assert done.detail == "1500"
    assert digit == 0
    assert task is not None
    assert (task.id, task.failures, task.last_error) == ("a1", 3, "ValueError: no")
    assert "failed:note" in done.tally.split()
    assert "tasks:retried:note" in done.tally.split()


def test_tasks_that_go_into_scheduled_differ() -> None:
    """Members of a sorted set are unique: two equal tasks would become one."""
    one, other = (settlement(held(), Retry(1.0, "no"), 0.1).stored for _ in range(2))

    assert one != other


def test_a_task_without_an_id_gets_one_when_it_goes_back() -> None:
    task = parse(settlement(held(id=""), Retry(1.0, "no"), 0.1).stored[1:])

    assert task is not None
    assert len(task.id) == 32


@pytest.mark.parametrize(("n", "digit"), [(0, 0), (1, 1), (2, 2), (2, 3)])
def test_a_release_at_once_leaves_the_bytes_alone(n: int, digit: int) -> None:
    done = settlement(held(n, digit), Release(0.0, "shutdown"), None)

    assert (done.verb, done.stored) == ("return", b"")
    assert sorted(done.tally.split()[1:]) == ["released:shutdown", "tasks:released:note"]
    assert (done.duration_us, done.latency_ms) == (-1, -1)


@pytest.mark.parametrize(("n", "digit"), [(0, 0), (1, 1), (2, 3)])
def test_a_release_for_later_keeps_the_crash_digit(n: int, digit: int) -> None:
    done = settlement(held(n, digit), Release(2.0, "limit"), None)

    task = parse(done.stored[1:])
    assert (done.verb, done.detail) == ("schedule", "2000")
    assert done.stored[:1] == b"%d" % digit
    assert task is not None
    assert task.requeue_nonce.startswith("limit-")
    assert (task.failures, task.interruptions, task.unroutable) == (0, 0, 0)


@pytest.mark.parametrize(("n", "digit"), [(0, 0), (1, 1), (2, 2)])
def test_an_interruption_is_counted_in_the_task(n: int, digit: int) -> None:
    done = settlement(held(n, digit, interruptions=3), Release(0.0, "shutdown", "interruptions"), None)

    task = parse(done.stored if n == 0 else done.stored[1:])
    assert done.verb == "return"
    assert n == 0 or done.stored[:1] == b"%d" % digit
    assert task is not None
    assert (task.interruptions, task.failures) == (4, 0)


def test_an_unknown_type_is_counted_in_the_task() -> None:
    done = settlement(held(), Release(5.0, "unknown", "unroutable"), None)

    task = parse(done.stored[1:])
    assert task is not None
    assert task.unroutable == 1
    assert not task.requeue_nonce.startswith("limit-")


def test_undecodable_bytes_are_dead_as_they_are() -> None:
    one = Claimed(0, b"\xffjunk", None)

    done = settlement(one, Dead("undecodable", "not a task"), None)

    assert (done.entry, done.verb, done.stored, done.detail) == (b"\xffjunk", "dead", b"", "undecodable")
    assert done.tally.split() == ["unknown", "tasks:dead:unknown"]


def test_a_dead_letter_shows_the_last_attempt() -> None:
    done = settlement(held(failures=4), Dead("failed", "ValueError: no"), 0.1)

    task = parse(done.stored)
    assert task is not None
    assert (task.failures, task.last_error) == (5, "ValueError: no")
    assert {"failed:note", "tasks:dead:note"} <= set(done.tally.split())


def test_expired_is_an_outcome_of_its_own() -> None:
    done = settlement(held(), Dead("expired", "expired 1 s ago"), None)

    assert (done.verb, done.detail, done.stored) == ("dead", "expired", b"")
    assert done.tally.split() == ["note", "tasks:expired:note"]


@pytest.mark.parametrize(
    ("outcome", "duration", "refund"),
    [
        (Ack(), 0.1, ""),
        (Retry(1.0, "no"), 0.1, ""),
        (Release(1.0, "limit"), None, "17"),
        (Release(0.0, "shutdown"), None, "17"),
        (Dead("undecodable", ""), None, "17"),
        (Dead("failed", "no"), 0.1, ""),
    ],
)
def test_a_permit_of_the_queue_goes_back_if_nothing_ran(outcome: Outcome, duration: float | None, refund: str) -> None:
    assert settlement(held(window="17"), outcome, duration).window == refund


@pytest.mark.parametrize(
    ("fields", "latency"),
    [
        ({"enqueued_at_ms": 9_000}, 1000),
        ({"enqueued_at_ms": 11_000}, 0),  # the producer's clock is fast
        ({"enqueued_at_ms": 0}, -1),
        ({"enqueued_at_ms": 9_000, "failures": 1}, -1),
        ({"enqueued_at_ms": 9_000, "interruptions": 1}, -1),
        ({"enqueued_at_ms": 9_000, "unroutable": 1}, -1),
    ],
)
def test_latency_is_of_first_attempts(fields: dict[str, object], latency: int) -> None:
    assert settlement(held(**fields), Ack(), 0.1).latency_ms == latency


def test_errors_are_bounded() -> None:
    done = settlement(held(), Retry(1.0, "x" * 10_000), 0.1)

    task = parse(done.stored[1:])
    assert task is not None
    assert len(task.last_error) == 4096


def test_absurd_counters_do_not_overflow() -> None:
    top = 2**32 - 1

    task = parse(settlement(held(failures=top), Retry(1.0, "no"), 0.1).stored[1:])

    assert task is not None
    assert task.failures == top


def test_a_delay_is_never_rounded_to_nothing() -> None:
    assert settlement(held(), Release(0.0001, "limit"), None).detail == "1"


def test_a_dead_letter_that_is_put_back_starts_anew() -> None:
    task = Task(
        **FIELDS, failures=5, interruptions=2, unroutable=1, last_error="no", requeue_nonce="limit-1", max_attempts=9
    )

    again = parse(reset(task.SerializeToString(), task))

    assert again is not None
    assert again == Task(**FIELDS, max_attempts=9)


def test_junk_that_is_put_back_stays_as_it_is() -> None:
    assert reset(b"\xffjunk", None) == b"\xffjunk"
