"""What a snapshot becomes: series and values."""

from __future__ import annotations

from typing import Any

from taskbatch.metrics import names
from taskbatch.metrics.projection import Histogram, project
from taskbatch.metrics.snapshot import Snapshot

Series = dict[tuple[str, ...], float | Histogram]


def snapshot(totals: dict[str, int] | None = None, **changes: Any) -> Snapshot:
    fields: dict[str, Any] = {
        "queue": "mail",
        "totals": totals or {},
        "states": {},
        "paused": False,
        "oldest_pending_ms": None,
        "version": "1.2.3",
    }
    return Snapshot(**(fields | changes))


def series(family: names.Family, of: Snapshot) -> Series:
    return {sample.labels: sample.value for sample in project(of) if sample.family is family}


def test_a_new_queue_shows_zeros_where_a_first_event_must_count() -> None:
    new = snapshot()

    assert series(names.CLAIMED, new) == {("mail",): 0}
    assert series(names.REAPED, new) == {
        ("mail", "recovered"): 0,
        ("mail", "suspects"): 0,
        ("mail", "dead"): 0,
    }
    assert series(names.RUNS, new) == {
        ("mail", "success"): 0,
        ("mail", "interrupted"): 0,
        ("mail", "error"): 0,
        ("mail", "crashed"): 0,
    }
    assert series(names.QUEUE_TASKS, new) == {
        ("mail", "pending"): 0,
        ("mail", "recovered"): 0,
        ("mail", "suspects"): 0,
        ("mail", "processing"): 0,
        ("mail", "scheduled"): 0,
        ("mail", "dead"): 0,
    }
    assert series(names.PAUSED, new) == {("mail",): 0}
    assert series(names.BUILD_INFO, new) == {("mail", "1.2.3"): 1}


def test_what_never_happened_has_no_time() -> None:
    new = snapshot()

    assert series(names.OLDEST_PENDING, new) == {}
    assert series(names.LAST_RUN, new) == {}
    assert series(names.LAST_SUCCESS, new) == {}
    assert series(names.LAST_DURATION, new) == {}


def test_times_are_in_seconds() -> None:
    totals = {"last_run_ms": 1_700_000_000_500, "last_success_ms": 1_600_000_000_250}
    totals["last_run_duration_us"] = 1_500_000

    seen = snapshot(totals, oldest_pending_ms=1_500_000_000_125)

    assert series(names.LAST_RUN, seen) == {("mail",): 1_700_000_000.5}
    assert series(names.LAST_SUCCESS, seen) == {("mail",): 1_600_000_000.25}
    assert series(names.LAST_DURATION, seen) == {("mail",): 1.5}
    assert series(names.OLDEST_PENDING, seen) == {("mail",): 1_500_000_000.125}


def test_gauges_are_what_was_read() -> None:
    seen = snapshot(states={"pending": 7, "dead": 2}, paused=True)

    assert series(names.QUEUE_TASKS, seen)["mail", "pending"] == 7
    assert series(names.QUEUE_TASKS, seen)["mail", "dead"] == 2
    assert series(names.PAUSED, seen) == {("mail",): 1}


def test_a_type_comes_with_all_its_outcomes() -> None:
    assert series(names.TASKS, snapshot({"tasks:succeeded:email.send": 3})) == {
        ("mail", "email.send", "succeeded"): 3,
        ("mail", "email.send", "retried"): 0,
        ("mail", "email.send", "released"): 0,
        ("mail", "email.send", "dead"): 0,
        ("mail", "email.send", "expired"): 0,
    }


def test_a_type_may_contain_colons() -> None:
    totals = {"tasks:dead:a:b:c": 1, "duration:0.5:a:b:c": 1, "duration_sum_us:a:b:c": 300_000}

    seen = snapshot(totals)

    assert series(names.TASKS, seen)["mail", "a:b:c", "dead"] == 1
    assert list(series(names.DURATION, seen)) == [("mail", "a:b:c")]


def test_what_another_release_counts_is_shown_too() -> None:
    totals = {"tasks:skipped:t": 2, "reaped:sold": 3, "runs:vanished": 4, "what:is:this": 5, "nor": 6}

    seen = snapshot(totals)

    assert series(names.TASKS, seen)["mail", "t", "skipped"] == 2
    assert series(names.REAPED, seen)["mail", "sold"] == 3
    assert series(names.RUNS, seen)["mail", "vanished"] == 4


def test_buckets_are_summed_up() -> None:
    totals = {
        "duration:0.005:t": 4,
        "duration:1:t": 2,
        "duration:+Inf:t": 1,
        "duration_sum_us:t": 400_500_000,
    }

    assert series(names.DURATION, snapshot(totals)) == {
        ("mail", "t"): Histogram(
            buckets=(
                ("0.005", 4),
                ("0.01", 4),
                ("0.025", 4),
                ("0.05", 4),
                ("0.1", 4),
                ("0.25", 4),
                ("0.5", 4),
                ("1", 6),
                ("2.5", 6),
                ("5", 6),
                ("10", 6),
                ("30", 6),
                ("60", 6),
                ("300", 6),
                ("+Inf", 7),
            ),
            sum=400.5,
        )
    }


def test_latency_is_there_from_the_start() -> None:
    totals = {"latency:0.1": 1, "latency:86400": 1, "latency_sum_ms": 80_000_050}

    (empty,) = series(names.LATENCY, snapshot()).values()
    (some,) = series(names.LATENCY, snapshot(totals)).values()

    assert isinstance(empty, Histogram)
    assert isinstance(some, Histogram)
    assert [count for _, count in empty.buckets] == [0] * 12
    assert [bound for bound, _ in some.buckets] == [
        "0.1",
        "0.5",
        "1",
        "5",
        "15",
        "60",
        "300",
        "900",
        "3600",
        "14400",
        "86400",
        "+Inf",
    ]
    assert [count for _, count in some.buckets] == [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]
    assert some.sum == 80_000.05


def test_a_bound_of_another_release_counts_in_the_next_wider_one() -> None:
    totals = {"latency:0.3": 1, "latency:1000000": 1, "latency:nan": 1, "latency:soon": 1}

    (histogram,) = series(names.LATENCY, snapshot(totals)).values()

    assert isinstance(histogram, Histogram)
    assert histogram.buckets[:2] == (("0.1", 0), ("0.5", 1))
    assert histogram.buckets[-2:] == (("86400", 1), ("+Inf", 4))


def test_beyond_500_types_the_rest_shares_a_label() -> None:
    totals = {f"tasks:succeeded:t{number:03}": 1 for number in range(600)}
    totals |= {f"duration:1:t{number:03}": 1 for number in range(600)}
    totals |= {"tasks:succeeded:unknown": 5}

    seen = snapshot(totals)
    tasks, durations = series(names.TASKS, seen), series(names.DURATION, seen)

    assert len(tasks) == 501 * 5
    assert tasks["mail", "t499", "succeeded"] == 1
    assert tasks["mail", "unknown", "succeeded"] == 105
    assert len(durations) == 501
    shared = durations["mail", "unknown"]
    assert isinstance(shared, Histogram)
    assert shared.buckets[-1] == ("+Inf", 100)


def test_no_counter_goes_back_when_one_type_too_many_appears() -> None:
    totals = {f"tasks:succeeded:t{number:03}": 10 for number in range(501)}
    before = series(names.TASKS, snapshot(totals))

    after = series(names.TASKS, snapshot(totals | {"tasks:succeeded:a": 1}))

    assert after["mail", "unknown", "succeeded"] == 20
    both = before.keys() & after.keys()
    assert all(after[labels] >= before[labels] for labels in both)  # type: ignore[operator]


def test_types_that_are_no_label_values_still_count() -> None:
    totals = {"tasks:dead:": 1, "tasks:dead:\udcff": 2, "tasks:dead:?": 3}

    tasks = series(names.TASKS, snapshot(totals))

    assert tasks["mail", "unknown", "dead"] == 1
    assert tasks["mail", "?", "dead"] == 5
