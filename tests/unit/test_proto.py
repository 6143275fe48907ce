"""The committed bindings are what the wire contract generates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from taskbatch.v1.task_pb2 import Task

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("grpc_tools")
    directory = tmp_path_factory.mktemp("proto")
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto"]
    protoc += [f"--python_out={directory}", f"--pyi_out={directory}", "proto/taskbatch/v1/task.proto"]
    subprocess.run(protoc, cwd=ROOT, check=True)
    return directory


@pytest.mark.parametrize("name", ["task_pb2.py", "task_pb2.pyi"])
def test_the_committed_bindings_are_the_generated_ones(generated: Path, name: str) -> None:
    committed = ROOT / "taskbatch" / "v1" / name

    assert committed.read_bytes() == (generated / "taskbatch" / "v1" / name).read_bytes()


def test_field_numbers_are_the_published_ones() -> None:
    numbers = {field.name: field.number for field in Task.DESCRIPTOR.fields}

    assert numbers == {
        "id": 1,
        "type": 2,
        "payload": 3,
        "content_type": 4,
        "enqueued_at_ms": 5,
        "failures": 6,
        "interruptions": 7,
        "unroutable": 8,
        "max_attempts": 9,
        "expires_at_ms": 10,
        "limit_key": 11,
        "last_error": 12,
        "requeue_nonce": 13,
        "unique_key": 14,
        "headers": 15,
    }


def test_the_id_comes_first_on_the_wire() -> None:
    task = Task(headers={"a": "b"}, type="email.send", id="0123", payload=b"{}")

    assert task.SerializeToString() == b"\n\x040123\x12\nemail.send\x1a\x02{}z\x06\n\x01a\x12\x01b"


def test_fields_of_a_newer_producer_survive_a_re_encoding() -> None:
    unknown_field_99 = b"\x9a\x06\x03new"
    raw = Task(id="1", type="t").SerializeToString() + unknown_field_99

    task = Task.FromString(raw)
    task.failures += 1

    assert unknown_field_99 in task.SerializeToString()
