"""Producers that are not ours: a Node program with protobufjs, and redis-cli with bytes made by hand."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from taskbatch.task import Task, bare, parse

if TYPE_CHECKING:
    from tests.program import Cli
    from tests.servers import Server

HERE = Path(__file__).parent
PROTO = HERE.parents[1] / "proto" / "taskbatch" / "v1" / "task.proto"
PENDING = "taskbatch:{default}:pending"
SCHEDULED = "taskbatch:{default}:scheduled"

JOBS = """
import json, os
from taskbatch import Task, job

@job("interop.record")
def record(payload: dict, task: Task) -> None:
    with open(os.environ["RECORD"], "a") as file:
        print(json.dumps([task.id, payload, dict(task.headers)]), file=file)

@job("interop.fail")
def fail(payload: dict) -> None:
    raise ValueError("as the test wants it")
"""


@dataclass(frozen=True)
class Recorder:
    """Drains the default queue with the jobs above."""

    cli: Cli
    jobs: Path
    record: Path

    def drain(self, url: str) -> dict[str, object]:
        """Return the report of one drain."""
        done = self.cli(
            "--redis-url", url, "--jobs", str(self.jobs), "drain", "--concurrency", "1", "--report", "json",
            env={"RECORD": str(self.record)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return dict(done.json())

    def seen(self) -> list[list[object]]:
        """Return [id, payload, headers] of each task that ran, in order."""
        return [json.loads(line) for line in self.record.read_text().splitlines()]


@pytest.fixture
def recorder(cli: Cli, tmp_path: Path) -> Recorder:
    jobs = tmp_path / "interop_jobs.py"
    jobs.write_text(JOBS)
    return Recorder(cli, jobs, tmp_path / "record")


def unavailable(what: str) -> NoReturn:
    """Skip; in CI, where everything must be there, fail."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def producer(pytestconfig: pytest.Config) -> Path:
    """Return the Node producer, beside its packages, which are installed once and kept for the next time."""
    if not shutil.which("node") or not shutil.which("npm"):
        unavailable("node and npm are not installed: apt-get install nodejs npm")
    assert pytestconfig.cache
    folder = pytestconfig.cache.mkdir("interop")
    wanted = (HERE / "package.json").read_text()
    installed = folder / "installed.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side share the folder
        if not installed.exists() or installed.read_text() != wanted:
            shutil.copy(HERE / "package.json", folder)
            install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
            done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
            if done.returncode:
                unavailable(f"npm install: {done.stderr}")
            installed.write_text(wanted)
        program = folder / "producer.mjs"
        shutil.copy(HERE / "producer.mjs", program)
    return program


def produce(producer: Path, *arguments: str) -> list[str]:
    """Return the lines that the Node producer prints."""
    command = ["node", str(producer), "--proto", str(PROTO), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def redis_cli(url: str, *command: str, last: bytes) -> None:
    """Send one command with `last`, any bytes, as its last argument."""
    if not shutil.which("redis-cli"):
        unavailable("redis-cli is not installed: apt-get install redis-tools")
    subprocess.run(["redis-cli", "-u", url, "-x", *command], input=last, check=True, timeout=10)


def test_what_node_enqueues_is_run(server: Server, recorder: Recorder, producer: Path) -> None:
    ids = produce(
        producer, "--url", server.url, "--type", "interop.record", "--count", "25",
        "--payload", '{"name": "Zoë"}', "--header", "traceparent=00-ab-cd-01", "--header", "by=node",
    )  # fmt: skip

    report = recorder.drain(server.url)

    assert report["succeeded"] == 25
    headers = {"traceparent": "00-ab-cd-01", "by": "node"}
    assert recorder.seen() == [[each, {"name": "Zoë", "n": n}, headers] for n, each in enumerate(ids)]
    assert server.client().exists(PENDING, "taskbatch:{default}:dead") == 0


def test_node_and_python_mean_the_same_bytes(producer: Path) -> None:
    (line,) = produce(producer, "--type", "interop.record", "--header", "by=node", "--print")
    raw = bytes.fromhex(line)

    task = parse(raw)

    assert task is not None
    assert task.enqueued_at_ms > 1_700_000_000_000
    assert task == Task(
        id=task.id,
        type="interop.record",
        payload=b'{"n":0}',
        content_type="application/json",
        enqueued_at_ms=task.enqueued_at_ms,
        headers={"by": "node"},
    )
    assert len(task.id) == 36
    assert task.SerializeToString() == raw


def test_bytes_made_by_hand_are_run(server: Server, recorder: Recorder) -> None:
    # Field 2, type, of 14 bytes; field 3, payload, of 10 bytes. Nothing else, no id in particular.
    redis_cli(server.url, "LPUSH", PENDING, last=b'\x12\x0einterop.record\x1a\x0a{"n": 123}')

    report = recorder.drain(server.url)

    assert report["succeeded"] == 1
    ((_, payload, headers),) = recorder.seen()
    assert (payload, headers) == ({"n": 123}, {})


def test_a_task_without_an_id_is_given_one_when_it_goes_back(server: Server, recorder: Recorder) -> None:
    redis_cli(server.url, "LPUSH", PENDING, last=b"\x12\x0cinterop.fail\x1a\x02{}")

    report = recorder.drain(server.url)

    assert report["retried"] == 1
    (entry,) = server.client().zrange(SCHEDULED, 0, -1)
    digit, raw = bare(entry)
    task = parse(raw)
    assert task is not None
    assert (digit, task.type, task.payload, task.failures) == (0, "interop.fail", b"{}", 1)
    assert task.id
