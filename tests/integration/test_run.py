"""What a run does with tasks: each outcome, as Redis and the report show it."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch import Client, RateLimit, job
from taskbatch.keys import limit_state
from taskbatch.task import MAX_TASK_BYTES, Task, bare, parse
from tests.batches import Batches, eventually, task

if TYPE_CHECKING:
    from taskbatch.declaration import Job


def noting(seen: list[str], name: str = "note", **options: object) -> Job:
    """Return a job that notes the ids of the tasks it ran."""

    @job(name, **options)  # type: ignore[arg-type]
    def note(task: Task) -> None:
        seen.append(task.id)

    return note


@job("fail")
def fail() -> None:
    raise ValueError("no such user")


# -- done ---------------------------------------------------------------------------------------------------


def test_each_task_runs_once_and_nothing_is_left(batches: Batches) -> None:
    seen: list[str] = []
    batches.push(*(task("note", f"{i}") for i in range(500)))

    report = batches.run(noting(seen))

    assert sorted(seen, key=int) == [f"{i}" for i in range(500)]
    assert (report.stop_reason, report.exit_code) == ("empty", 0)
    assert (report.tally.claimed, report.tally.outcomes["succeeded"]) == (500, 500)
    batches.check_base_line()
    totals = batches.totals()
    assert (totals["claimed"], totals["tasks:succeeded:note"], totals["runs:success"]) == (500, 500, 1)
    assert sum(count for name, count in totals.items() if name.startswith("duration:")) == 500


def test_tasks_of_one_thread_run_in_order(batches: Batches) -> None:
    seen: list[str] = []
    batches.push(*(task("note", f"{i}") for i in range(100)))

    batches.run(noting(seen), concurrency=1)

    assert seen == [f"{i}" for i in range(100)]


def test_an_empty_queue_is_no_trouble(batches: Batches) -> None:
    report = batches.run(noting([]))

    assert (report.stop_reason, report.exit_code, report.tally.claimed) == ("empty", 0, 0)
    assert report.duration < 1.0


def test_a_task_enqueued_by_a_job_is_picked_up_in_the_same_run(batches: Batches) -> None:
    seen: list[str] = []
    url = batches.server.url

    @job("chain")
    def chain(payload: int) -> None:
        seen.append(f"{payload}")
        if payload:
            with Client(url) as client:
                client.enqueue("chain", payload - 1)

    batches.push(task("chain", payload=b"5"))

    report = batches.run(chain)

    assert seen == ["5", "4", "3", "2", "1", "0"]
    assert report.tally.outcomes["succeeded"] == 6
    batches.check_base_line()


def test_a_deduplication_key_is_free_again_after_the_ack(batches: Batches) -> None:
    with Client(batches.server.url) as client:
        first = client.enqueue("note", None, unique_key="order-7")
        twin = client.enqueue("note", None, unique_key="order-7")
        assert (twin.duplicate, twin.id) == (True, first.id)

        batches.run(noting([]))

        assert not client.enqueue("note", None, unique_key="order-7").duplicate


def test_a_deduplication_key_of_another_task_is_left_alone(batches: Batches) -> None:
    with Client(batches.server.url) as client:
        client.enqueue("note", None, unique_key="order-7")
    batches.redis.set(batches.keys.unique("order-7"), "somebody else's")

    batches.run(noting([]))

    assert batches.redis.get(batches.keys.unique("order-7")) == b"somebody else's"


# -- failed -------------------------------------------------------------------------------------------------


def test_a_failed_attempt_comes_back_later(batches: Batches) -> None:
    batches.push(task("fail", "a"))
    before = batches.now_ms()

    report = batches.run(fail)

    ((entry, due),) = batches.scheduled()
    digit, raw = bare(entry)
    again = parse(raw)
    assert again is not None
    assert (digit, again.id, again.failures, again.last_error) == (0, "a", 1, "ValueError: no such user")
    assert before + 1000 <= due <= batches.now_ms() + 10_000
    assert (report.exit_code, report.tally.outcomes["retried"], report.tally.failed_attempts) == (0, 1, 1)
    assert report.next_due_at == due / 1000
    assert batches.totals()["failed:fail"] == 1


def test_the_last_attempt_makes_a_dead_letter(batches: Batches) -> None:
    batches.push(task("fail", "a"))

    for _ in range(5):
        batches.make_due()
        report = batches.run(fail, fail_on="dead")

    (letter,) = batches.dead()
    dead = parse(letter["task"])
    assert dead is not None
    assert (letter["reason"], letter["error"]) == (b"failed", b"ValueError: no such user")
    assert dead.failures == 5
    assert batches.lengths() == {"dead": 1}
    assert (report.exit_code, report.tally.outcomes["dead"]) == (1, 1)
    assert report.tally.dead_letters[0]["id"] == "a"
    assert batches.totals()["tasks:retried:fail"] == 4
    assert batches.totals()["tasks:dead:fail"] == 1


def test_max_attempts_of_the_task_goes_before_the_job_s(batches: Batches) -> None:
    batches.push(task("fail", max_attempts=1))

    report = batches.run(fail)

    assert report.tally.outcomes["dead"] == 1


def test_a_failure_resets_the_crash_digit(batches: Batches) -> None:
    batches.redis.lpush(batches.keys.recovered, b"1" + task("fail", "a"))

    batches.run(fail)

    assert batches.scheduled()[0][0][:1] == b"0"


def test_fail_on_failed_sees_an_attempt_that_will_be_tried_again(batches: Batches) -> None:
    batches.push(task("fail"))

    assert batches.run(fail, fail_on="failed").exit_code == 1


def test_two_equal_tasks_that_fail_stay_two(batches: Batches) -> None:
    batches.push(task("fail"), task("fail"))

    batches.run(fail)

    assert batches.lengths() == {"scheduled": 2}


# -- not run ------------------------------------------------------------------------------------------------


def test_an_expired_task_is_a_dead_letter_and_does_not_run(batches: Batches) -> None:
    seen: list[str] = []
    batches.push(task("note", "old", expires_at_ms=batches.now_ms() - 1))
    batches.push(task("note", "new", expires_at_ms=batches.now_ms() + 60_000))

    report = batches.run(noting(seen), fail_on="failed")

    assert seen == ["new"]
    assert batches.dead()[0]["reason"] == b"expired"
    assert (report.tally.outcomes["expired"], report.tally.outcomes["dead"], report.exit_code) == (1, 0, 0)
    assert batches.totals()["tasks:expired:note"] == 1


def test_an_unknown_type_goes_back_and_rests_longer_each_time(batches: Batches) -> None:
    raw = task("later", "a", payload=b"\xff")
    batches.push(raw)
    delays = []

    for _ in range(3):
        batches.make_due()
        before = batches.now_ms()
        report = batches.run(noting([]))
        delays.append(round((batches.scheduled()[0][1] - before) / 1000))
        assert report.tally.released_by["unknown"] == 1

    assert delays == [5, 10, 20]
    again = parse(batches.scheduled()[0][0][1:])
    assert again is not None
    assert (again.unroutable, again.failures, again.payload) == (3, 0, b"\xff")


def test_an_unknown_type_runs_once_somebody_knows_it(batches: Batches) -> None:
    seen: list[str] = []
    batches.push(task("later", "a"))
    batches.run(noting([]))
    batches.make_due()

    batches.run(noting(seen, "later"))

    assert seen == ["a"]
    batches.check_base_line()


def test_the_twentieth_run_that_knows_no_job_buries_it(batches: Batches) -> None:
    batches.push(task("later", unroutable=18))

    assert batches.run(noting([])).tally.outcomes["released"] == 1
    batches.make_due()
    report = batches.run(noting([]))

    assert report.tally.outcomes["dead"] == 1
    assert batches.dead()[0]["reason"] == b"unroutable"


JUNK = (
    b"\xff\xfe junk",
    b"",
    b"\x00",
    b'{"type": "note"}',
    Task(id="no type").SerializeToString(),
    b"\x0b" * 2000,
    task("note", payload=b"cut off")[:-4],
)


def test_junk_among_good_tasks_is_dead_byte_for_byte(batches: Batches) -> None:
    seen: list[str] = []
    for i, junk in enumerate(JUNK):
        batches.push(task("note", f"{i}"), junk)

    report = batches.run(noting(seen))

    assert sorted(seen) == ["0", "1", "2", "3", "4", "5", "6"]
    assert sorted(letter["task"] for letter in batches.dead()) == sorted(JUNK)
    assert {letter["reason"] for letter in batches.dead()} == {b"undecodable"}
    assert report.tally.outcomes["dead"] == 7
    assert report.as_dict()["by_type"]["unknown"]["dead"] == 7


def test_a_task_too_large_is_dead_byte_for_byte(batches: Batches) -> None:
    seen: list[str] = []
    fits = task("note", "fits", payload=b'"' + b"x" * (1024 * 1024 - 2) + b'"')
    large = task("note", "large", payload=b"x" * MAX_TASK_BYTES)
    batches.push(large, fits)

    batches.run(noting(seen))

    assert seen == ["fits"]
    (letter,) = batches.dead()
    assert (letter["reason"], letter["task"] == large) == (b"oversize", True)


def test_junk_in_the_other_lists_is_dead_too(batches: Batches) -> None:
    batches.redis.lpush(batches.keys.recovered, b"1junk")
    batches.redis.lpush(batches.keys.suspects, b"2junk")
    batches.redis.zadd(batches.keys.scheduled, {b"0junk": 1})

    batches.run(noting([]))

    assert [letter["task"] for letter in batches.dead()] == [b"junk"] * 3
    assert batches.lengths() == {"dead": 3}


# -- scheduled ----------------------------------------------------------------------------------------------


def test_a_delayed_task_waits_for_its_time(batches: Batches) -> None:
    seen: list[str] = []
    with Client(batches.server.url) as client:
        client.enqueue("note", None, id="later", delay=30)
        client.enqueue("note", None, id="now")

    report = batches.run(noting(seen))

    assert seen == ["now"]
    assert report.remaining is not None
    assert report.remaining.scheduled == 1
    assert report.next_due_at is not None
    assert 25 < report.next_due_at - time.time() < 31


def test_due_tasks_go_first_the_longest_waiting_in_front(batches: Batches) -> None:
    seen: list[str] = []
    batches.push(task("note", "newcomer"))
    for due, name in ((3, "c"), (1, "a"), (2, "b")):
        batches.redis.zadd(batches.keys.scheduled, {b"0" + task("note", name): due})

    batches.run(noting(seen), concurrency=1)

    assert seen == ["a", "b", "c", "newcomer"]


def test_wait_due_waits_for_retries_that_fall_due_in_time(batches: Batches) -> None:
    seen: list[str] = []
    soon, late = batches.now_ms() + 400, batches.now_ms() + 60_000
    batches.redis.zadd(batches.keys.scheduled, {b"0" + task("note", "soon"): soon, b"0" + task("note", "late"): late})

    report = batches.run(noting(seen), wait_due=2.0)

    assert seen == ["soon"]
    assert (report.stop_reason, batches.lengths()) == ("empty", {"scheduled": 1})
    assert 0.3 < report.duration < 2.0


def test_without_wait_due_what_is_scheduled_is_left(batches: Batches) -> None:
    batches.redis.zadd(batches.keys.scheduled, {b"0" + task("note"): batches.now_ms() + 5000})

    report = batches.run(noting([]))

    assert report.duration < 1.0
    assert batches.lengths() == {"scheduled": 1}


def test_what_falls_due_while_waiting_for_new_work_runs_at_once(batches: Batches) -> None:
    ran: list[float] = []

    @job("note")
    def note() -> None:
        ran.append(time.time() * 1000)

    due = batches.now_ms() + 300
    batches.redis.zadd(batches.keys.scheduled, {b"0" + task("note"): due})

    batches.run(note, wait=1.5)

    assert len(ran) == 1
    assert ran[0] - due < 300


# -- limits -------------------------------------------------------------------------------------------------


def test_a_denied_task_costs_no_attempt_and_comes_back(batches: Batches) -> None:
    seen: list[str] = []
    limited = noting(seen, "slow", rate_limit=RateLimit("3/1000h"))
    batches.push(*(task("slow", f"{i}") for i in range(10)))

    report = batches.run(limited)

    assert len(seen) == 3
    assert report.tally.released_by["limit"] == 7
    for entry, _ in batches.scheduled():
        again = parse(entry[1:])
        assert again is not None
        assert (again.failures, again.interruptions, again.unroutable) == (0, 0, 0)
    # Spread over the windows that have room, three each; a moment passes between the answer and its settle.
    dues = sorted(round(due / 3_600_000) for _, due in batches.scheduled())
    assert all(due % 1000 == 0 for due in dues)
    assert [dues.count(due) for due in sorted(set(dues))] == [3, 3, 1]


def test_limit_keys_have_their_own_counts(batches: Batches) -> None:
    seen: list[str] = []
    limited = noting(seen, "slow", rate_limit=RateLimit("2/1000h"))
    batches.push(*(task("slow", f"{who}{i}", limit_key=who) for i in range(5) for who in "ab"))

    batches.run(limited)

    assert sorted(name[0] for name in seen) == ["a", "a", "b", "b"]


def test_limited_tasks_are_no_barrier_for_others(batches: Batches) -> None:
    seen: list[str] = []
    limited = noting(seen, "slow", rate_limit=RateLimit("1/1000h"))
    batches.push(*(task("slow", f"s{i}") for i in range(50)), *(task("free", f"f{i}") for i in range(50)))

    batches.run(limited, noting(seen, "free"), concurrency=2)

    assert sum(name.startswith("f") for name in seen) == 50
    assert sum(name.startswith("s") for name in seen) == 1
    assert batches.totals()["claimed"] == 100


def test_a_limiter_that_cannot_answer_starts_nothing_limited(batches: Batches) -> None:
    seen: list[str] = []
    batches.redis.set(limit_state("taskbatch", "slow", ""), "a string")
    batches.push(task("slow", "s"), task("free", "f"))

    report = batches.run(noting(seen, "slow", rate_limit=RateLimit("9/1000h")), noting(seen, "free"))

    assert seen == ["f"]
    assert report.tally.released_by["limit"] == 1
    assert batches.lengths() == {"scheduled": 1}


def test_a_queue_wide_limit_is_taken_in_the_claim(batches: Batches) -> None:
    seen: list[str] = []
    batches.redis.hset(batches.keys.config, "limit", "5 3600000000")
    batches.push(*(task("note", f"{i}") for i in range(20)))

    report = batches.run(noting(seen))

    assert sorted(seen) == ["0", "1", "2", "3", "4"]
    assert report.tally.claimed == 5  # what the limit keeps back is not even claimed
    assert (report.stop_reason, batches.lengths()) == ("empty", {"pending": 15})


def test_permits_of_the_queue_that_started_nothing_go_back(batches: Batches) -> None:
    seen: list[str] = []
    batches.redis.hset(batches.keys.config, "limit", "5 3600000000")
    batches.push(b"junk", b"junk", task("other"), *(task("note", f"{i}") for i in range(20)))

    batches.run(noting(seen), concurrency=2)

    assert len(seen) == 5


def test_wait_due_waits_for_a_queue_wide_limit(batches: Batches) -> None:
    seen: list[str] = []
    batches.redis.hset(batches.keys.config, "limit", "5 200")
    batches.push(*(task("note", f"{i}") for i in range(15)))

    report = batches.run(noting(seen), wait_due=1.0)

    assert len(seen) == 15
    assert report.tally.claimed == 15
    assert report.stop_reason == "empty"


# -- new work -----------------------------------------------------------------------------------------------


def test_new_work_wakes_a_waiting_run_at_once(batches: Batches) -> None:
    ran: list[float] = []

    @job("note")
    def note() -> None:
        ran.append(time.monotonic())

    reports = []
    thread = threading.Thread(target=lambda: reports.append(batches.run(note, wait=3.0, max_tasks=1)))
    thread.start()
    eventually(lambda: batches.redis.info("clients")["blocked_clients"] == 1, "the wait")
    pushed = time.monotonic()
    batches.push(task("note"))

    thread.join(10)
    assert ran
    assert ran[0] - pushed < 0.5  # well under a slice
    assert reports[0].stop_reason == "max_tasks"


def test_a_run_waits_for_new_work_as_long_as_it_was_told(batches: Batches) -> None:
    report = batches.run(noting([]), wait=1.3)

    assert 1.2 < report.duration < 2.5
    assert report.stop_reason == "empty"


# -- the server's side --------------------------------------------------------------------------------------


def test_scripts_that_the_server_forgot_are_sent_again(batches: Batches) -> None:
    seen: list[str] = []
    admin = batches.server.client()

    @job("note")
    def note(task: Task) -> None:
        seen.append(task.id)
        admin.script_flush()

    batches.push(*(task("note", f"{i}") for i in range(30)))

    report = batches.run(note, concurrency=2)

    assert sorted(seen, key=int) == [f"{i}" for i in range(30)]
    assert report.tally.outcomes["succeeded"] == 30
    batches.check_base_line()


def test_a_full_server_still_drains(batches: Batches) -> None:
    seen: list[str] = []
    batches.push(*(task("note", f"{i}") for i in range(50)), task("fail"))
    batches.redis.config_set("maxmemory", "1")
    try:
        report = batches.run(noting(seen), fail, wait=0.2)
    finally:
        batches.redis.config_set("maxmemory", "0")

    assert len(seen) == 50
    assert (report.tally.outcomes["retried"], report.exit_code) == (1, 0)


# -- the books ----------------------------------------------------------------------------------------------


def test_a_run_leaves_a_line_in_the_history_and_no_entry(batches: Batches) -> None:
    batches.push(task("note"), task("fail"))

    report = batches.run(noting([]), fail)

    (line,) = batches.history()
    assert (line["run"], line["result"], line["stop_reason"]) == (report.run_id, "success", "empty")
    assert (line["exit_code"], line["count"]) == ("0", "1")
    summary = json.loads(line["summary"])
    assert (summary["succeeded"], summary["retried"]) == (1, 1)
    assert summary["claimed"] == report.tally.claimed
    assert int(line["started_ms"]) <= int(line["ended_ms"])
    assert not batches.redis.exists(batches.keys.runs, batches.keys.runs_info)


def test_idle_runs_in_a_row_are_one_line(batches: Batches) -> None:
    for _ in range(3):
        batches.run(noting([]))
    batches.push(task("note"))
    batches.run(noting([]))
    for _ in range(2):
        batches.run(noting([]))

    assert [(line["idle"], line["count"]) for line in batches.history()] == [("1", "3"), ("0", "1"), ("1", "2")]
    assert batches.totals()["runs:success"] == 6


@pytest.mark.parametrize(
    ("key", "kind"), [("pending", "hash"), ("recovered", "hash"), ("suspects", "hash"), ("dead", "list")]
)
def test_a_key_of_a_wrong_type_is_named_and_nothing_moves(batches: Batches, key: str, kind: str) -> None:
    name = getattr(batches.keys, key)
    if key != "pending":
        batches.push(task("note"))
    if kind == "hash":
        batches.redis.hset(name, "a", "b")
    else:
        batches.redis.lpush(name, "a")

    report = batches.run(noting([]))

    assert report.exit_code == 78
    assert report.error is not None
    assert name in report.error
    assert not batches.redis.exists(batches.keys.runs)
    if key != "pending":
        assert batches.redis.llen(batches.keys.pending) == 1
