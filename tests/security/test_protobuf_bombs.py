"""Bytes that are meant to exhaust a parser end as dead letters, byte for byte, with either parser of protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskbatch.task import MAX_TASK_BYTES, Task
from tests.batches import Batches, task

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program import Cli

JOBS = "from taskbatch import job\n@job('note')\ndef note(payload: bytes): pass\n"
MEMORY = 700 * 1024 * 1024
"""Address space in bytes of a run over all of them: libraries and threads take half of it."""


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    done = bytearray()
    while number > 0x7F:
        done.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*done, number])


def field(number: int, wire: int, body: bytes = b"") -> bytes:
    """Return a field; one of wire type 2 with its length."""
    return varint(number << 3 | wire) + (varint(len(body)) if wire == 2 else b"") + body


GOOD = task("note", "good", payload=b"x")
OPEN, CLOSE = field(100, 3), field(100, 4)
FULL = MAX_TASK_BYTES - 2_000

READABLE = {
    "100,000 headers": GOOD + b"".join(field(15, 2, field(1, 2, b"%d" % i)) for i in range(100_000)),
    "one header 100,000 times": GOOD + field(15, 2, field(1, 2, b"k") + field(2, 2, b"v")) * 100_000,
    "100,000 unknown fields": GOOD + field(1000, 0, b"\x01") * 100_000,
    "a field of every number": GOOD + b"".join(field(n, 0, b"\x01") for n in range(100, 60_000)),
    "unknown groups side by side": GOOD + (OPEN + CLOSE) * 100_000,
    "the id 100,000 times": field(1, 2, b"i") * 100_000 + GOOD,
    "varints of ten bytes": GOOD + field(5, 0, b"\xff" * 9 + b"\x01") * 50_000,
}
"""Odd, but tasks: they run. What is unknown may have been written by a newer release."""

UNDECODABLE = {
    "100,000 groups, open": GOOD + OPEN * 100_000,
    "250,000 groups, closed": GOOD + OPEN * 250_000 + CLOSE * 250_000,
    "groups without a beginning": GOOD + CLOSE,
    "a group that another one ends": GOOD + OPEN + field(101, 4),
    "a length beyond the end": GOOD + varint(3 << 3 | 2) + varint(2**31 - 1) + b"x",
    "a length of 2^63": GOOD + varint(3 << 3 | 2) + varint(2**63) + b"x",
    "a length that does not end": GOOD + varint(3 << 3 | 2) + b"\xff" * 50,
    "a header that is longer than its entry": GOOD + field(15, 2, varint(1 << 3 | 2) + varint(2**30)),
    "field number 0": GOOD + b"\x00\x01",
    "wire type 7": GOOD + bytes([16 << 3 & 0x7F | 7]),
    "no UTF-8": GOOD + field(2, 2, b"\xff\xfe"),
    "nothing": b"",
    "no type": Task(id="x", payload=b"y" * FULL).SerializeToString(),
    "zeros": b"\x00" * FULL,
    "ones": b"\xff" * FULL,
    "a pickle": b"\x80\x04\x95",
}

OVERSIZE = {
    "a byte too many": task("note", "big", payload=b"x" * (MAX_TASK_BYTES - len(GOOD) + 10)),
    "8 MB of groups": GOOD + OPEN * 4_000_000,
    "3 MB of headers": GOOD + b"".join(field(15, 2, field(1, 2, b"%d" % i)) for i in range(300_000)),
}


@pytest.mark.parametrize("parser", ["upb", "python"])
def test_bombs_among_good_tasks(cli: Cli, batches: Batches, tmp_path: Path, parser: str) -> None:
    (tmp_path / "note.py").write_text(JOBS)
    for bomb in (*UNDECODABLE.values(), *READABLE.values(), *OVERSIZE.values()):
        batches.push(GOOD, bomb)
    batches.push(GOOD)
    good = len(UNDECODABLE) + len(READABLE) + len(OVERSIZE) + 1
    env = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": parser, "TASKBATCH_REDIS_URL": batches.server.url}
    # The first line of proof: that it is the parser we mean.
    (tmp_path / "parser.py").write_text(
        "from google.protobuf.internal import api_implementation\n"
        f"assert api_implementation.Type() == {parser!r}\n{JOBS.replace('note', 'other')}"
    )
    arguments = ["--jobs", str(tmp_path / "note.py"), "--jobs", str(tmp_path / "parser.py"), "--report", "json"]
    limited = ["prlimit", f"--as={MEMORY}", *cli.command]
    cli.command = limited

    result = cli("drain", "-c", "4", *arguments, env=env)

    assert result.returncode == 0, result.stderr
    report = result.json()
    # A parser may refuse what the other one reads; nothing else may become of it.
    refused = report["dead"] - len(UNDECODABLE) - len(OVERSIZE)
    assert 0 <= refused <= 2, [letter["reason"] for letter in report["dead_letters"]]
    assert report["succeeded"] == good + len(READABLE) - refused
    assert report["retried"] == report["lost"] == report["released"] == 0
    kept = [(fields["reason"].decode(), fields["task"]) for fields in batches.dead()]
    assert {raw for reason, raw in kept if reason == "oversize"} == set(OVERSIZE.values())
    undecodable = {raw for reason, raw in kept if reason == "undecodable"}
    assert undecodable >= set(UNDECODABLE.values())
    assert undecodable <= {*UNDECODABLE.values(), *READABLE.values()}
    assert len(kept) == report["dead"]


@pytest.mark.parametrize("parser", ["upb", "python"])
def test_bombs_of_dead_letters_are_listed_and_go_back_as_they_are(
    cli: Cli, batches: Batches, tmp_path: Path, parser: str
) -> None:
    (tmp_path / "note.py").write_text(JOBS)
    env = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": parser, "TASKBATCH_REDIS_URL": batches.server.url}
    bombs = [*UNDECODABLE.values(), *OVERSIZE.values()]
    batches.push(*bombs)
    cli("drain", "--jobs", str(tmp_path / "note.py"), env=env)
    entries = [name.decode() for name, _ in batches.redis.xrange(batches.keys.dead)]

    assert len(cli("dead", "list", "--limit", "100", env=env).stdout.splitlines()) == 1 + len(bombs)
    for entry in entries[:3] + entries[-2:]:
        assert cli("dead", "show", entry, env=env).returncode == 0
    assert cli("dead", "redrive", "--all", env=env).returncode == 0

    waiting = batches.redis.lrange(batches.keys.pending, 0, -1)
    assert sorted(waiting) == sorted(bombs)


def test_retrying_a_task_with_unknown_fields_keeps_them(batches: Batches) -> None:
    from taskbatch import job  # noqa: PLC0415 - the other tests start programs

    @job("note")
    def fail() -> None:
        raise ValueError

    newer = GOOD + field(1000, 2, b"of a newer release") + OPEN + field(7, 0, b"\x05") + CLOSE
    batches.push(newer)

    batches.run(fail)

    [(entry, _)] = batches.scheduled()
    assert b"of a newer release" in entry
    assert OPEN in entry
