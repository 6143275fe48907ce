"""Dead letters: read in pages, found, put back, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskbatch.connect import Link
from taskbatch.errors import ConfigError, RefusedError
from taskbatch.keys import Keys
from taskbatch.letters import Letters
from taskbatch.scripts import Scripts
from taskbatch.settings import RedisSettings
from taskbatch.task import Task, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from tests.servers import Server

KEYS = Keys("taskbatch", "mail")


@pytest.fixture
def letters(server: Server) -> Iterator[Letters]:
    link = Link(RedisSettings(url=server.url))
    yield Letters(Scripts(link), KEYS)
    link.close()


@pytest.fixture
def client(server: Server) -> redis.Redis:
    return server.client()


def dead(client: redis.Redis, task_id: str, *, raw: bytes | None = None) -> str:
    """Put a dead letter there, as settling does; returns its entry id."""
    task = Task(
        id=task_id, type="email.send", payload=b"{}", failures=5, interruptions=2, unroutable=1,
        last_error="boom", requeue_nonce="n", headers={"a": "b"},
    )  # fmt: skip
    fields = {
        "task": task.SerializeToString() if raw is None else raw,
        "reason": "failed", "error": "boom", "run": "r1", "at": "1700000000123",
    }  # fmt: skip
    entry: bytes = client.xadd(KEYS.dead, fields)
    return entry.decode()


def test_a_letter_has_all_that_was_kept(client: redis.Redis, letters: Letters) -> None:
    entry = dead(client, "t1")

    (letter,) = letters

    assert (letter.entry, letter.reason, letter.error, letter.run, letter.at_ms) == (
        entry, "failed", "boom", "r1", 1700000000123,
    )  # fmt: skip
    assert letter.task is not None
    assert letter.task.id == "t1"
    assert letter.raw == letter.task.SerializeToString()


def test_bytes_that_are_no_task_are_kept_as_they_are(client: redis.Redis, letters: Letters) -> None:
    dead(client, "", raw=b"\xff\x00garbage")
    (letter,) = letters
    assert letter.task is None
    assert letter.raw == b"\xff\x00garbage"


def test_a_foreign_entry_is_a_letter_too(client: redis.Redis, letters: Letters) -> None:
    client.xadd(KEYS.dead, {"something": "else"})
    (letter,) = letters
    assert (letter.task, letter.raw, letter.reason, letter.at_ms) == (None, b"", "", 0)


def test_many_are_read_in_order_page_by_page(client: redis.Redis, letters: Letters) -> None:
    for n in range(250):
        dead(client, f"t{n}")

    assert [letter.task.id for letter in letters if letter.task] == [f"t{n}" for n in range(250)]
    assert [one.task.id for one in letters.newest(120) if one.task] == [f"t{n}" for n in range(249, 129, -1)]
    assert letters.count() == 250


def test_reading_ends_although_more_die_meanwhile(client: redis.Redis, letters: Letters) -> None:
    for n in range(3):
        dead(client, f"t{n}")
    seen = 0
    for _ in letters:
        dead(client, "later")
        seen += 1
    assert seen == 3


def test_a_letter_is_found_by_its_entry_or_its_task(client: redis.Redis, letters: Letters) -> None:
    first, _, third = dead(client, "t1"), dead(client, "t2"), dead(client, "t1")

    assert [letter.entry for letter in letters.find(first)] == [first]
    assert [letter.entry for letter in letters.find("t1")] == [first, third]
    assert letters.find("t9") == []
    assert letters.find("99999999999999999999-0") == []
    assert letters.find("") == []


def test_a_redriven_task_starts_anew_and_keeps_the_rest(client: redis.Redis, letters: Letters) -> None:
    dead(client, "t1")

    assert letters.redrive(letters.find("t1")) == 1

    assert letters.count() == 0
    (raw,) = client.lrange(KEYS.pending, 0, -1)
    task = parse(raw)
    assert task == Task(id="t1", type="email.send", payload=b"{}", headers={"a": "b"})
    assert client.hgetall(KEYS.totals) == {b"redriven": b"1"}


def test_what_is_no_task_goes_back_byte_for_byte(client: redis.Redis, letters: Letters) -> None:
    dead(client, "", raw=b"\xffgarbage")
    letters.redrive_all()
    assert client.lrange(KEYS.pending, 0, -1) == [b"\xffgarbage"]


def test_all_are_redriven_in_the_order_they_died(client: redis.Redis, letters: Letters) -> None:
    for n in range(150):
        dead(client, f"t{n}")

    assert letters.redrive_all() == 150

    back = [parse(raw) for raw in reversed(client.lrange(KEYS.pending, 0, -1))]
    assert [task.id for task in back if task] == [f"t{n}" for n in range(150)]
    assert letters.count() == 0


def test_large_ones_are_redriven_as_well(client: redis.Redis, letters: Letters) -> None:
    for _ in range(12):
        dead(client, "", raw=b"x" * 1_000_000)
    assert letters.redrive_all() == 12


def test_a_second_redrive_changes_nothing(client: redis.Redis, letters: Letters) -> None:
    dead(client, "t1")
    found = letters.find("t1")

    assert letters.redrive(found) == 1
    assert letters.redrive(found) == 0
    assert letters.discard(found) == 0
    assert client.llen(KEYS.pending) == 1


def test_letters_are_deleted_one_by_one_or_all(client: redis.Redis, letters: Letters) -> None:
    for n in range(120):
        dead(client, f"t{n}")

    assert letters.discard(letters.find("t5")) == 1
    assert letters.discard_all() == 119

    assert letters.count() == 0
    assert client.llen(KEYS.pending) == 0
    assert client.hgetall(KEYS.totals) == {b"deleted": b"120"}


def test_a_full_server_refuses_a_redrive_and_loses_nothing(client: redis.Redis, letters: Letters) -> None:
    dead(client, "t1")
    found = letters.find("t1")
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(RefusedError):
            letters.redrive(found)
        assert letters.count() == 1
        assert letters.discard(found) == 1
    finally:
        client.config_set("maxmemory", 0)


def test_a_key_of_a_wrong_type_is_a_configuration_error(client: redis.Redis, letters: Letters) -> None:
    client.set(KEYS.dead, "not ours")
    with pytest.raises(ConfigError, match="WRONGTYPE"):
        list(letters)
