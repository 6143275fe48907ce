"""Nothing in a payload chooses code: types are looked up by exact name, bytes stay bytes, nothing is imported."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskbatch
from taskbatch import Client, job
from taskbatch.errors import ConfigError
from taskbatch.keys import Keys
from taskbatch.task import Task
from tests.batches import Batches, task

if TYPE_CHECKING:
    from tests.program import Cli

PROMISING = [
    "os.system",
    "os:system",
    "builtins.eval",
    "subprocess.check_output",
    "spy",
    "spy.run",
    "spy:run",
    "jobs.spy",
    "jobs/spy.py",
    "./spy.py",
    "../jobs/spy.py",
    "/tmp/spy.py",  # noqa: S108
    "taskbatch.cli.main",
    "__import__('os').system",
    "note.function",
    "note.__call__",
    "Note",
    " note",
    "note\x00",
    "note\n",
]


def test_a_type_is_an_exact_name_and_imports_nothing(batches: Batches) -> None:
    ran: list[str] = []

    @job("note")
    def note(task: Task) -> None:
        ran.append(task.id)

    batches.push(task("note", "warm"))
    batches.run(note)
    before = set(sys.modules)

    batches.push(*(task(kind, kind, payload=b'"touch /tmp/owned"') for kind in PROMISING), task("note", "last"))
    report = batches.run(note)

    assert ran == ["warm", "last"]
    assert report.tally.released_by["unknown"] == len(PROMISING)
    assert set(sys.modules) == before
    assert batches.lengths() == {"scheduled": len(PROMISING)}


def test_a_module_beside_the_jobs_is_not_imported_for_a_task(cli: Cli, batches: Batches) -> None:
    spied = cli.cwd / "spied"
    spy = f"open({str(spied)!r}, 'w').close()\ndef run(*_): pass\n"
    (cli.cwd / "spy.py").write_text(spy)
    (cli.cwd / "work.py").write_text("from taskbatch import job\n@job('work')\ndef work(): pass\n")
    batches.push(*(task(kind, kind) for kind in PROMISING), task("work", "one"))

    result = cli("run", "--jobs", "work", "--wait", "0s", "--report", "json", "--redis-url", batches.server.url)

    assert result.returncode == 0, result.stderr
    assert (result.json()["succeeded"], result.json()["released_by"]["unknown"]) == (1, len(PROMISING))
    assert not spied.exists()


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, spied: Path) -> None:
        self.spied = spied

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.spied}",))


BILLION = 'a: &a ["lol","lol"]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c]\n'


@pytest.mark.parametrize(
    "content_type",
    ["", "application/json", "text/plain", "application/octet-stream", "application/x-pickle", "text/yaml"],
)
def test_pickles_and_yaml_are_only_bytes(batches: Batches, tmp_path: Path, content_type: str) -> None:
    spied = tmp_path / "spied"
    bombs = [
        pickle.dumps(Bomb(spied)),
        b"!!python/object/apply:os.system ['touch " + str(spied).encode() + b"']",
        BILLION.encode(),
        b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    ]
    got: list[bytes] = []

    @job("take.bytes")
    def take_bytes(payload: bytes) -> None:
        got.append(payload)

    @job("take.json")
    def take_json(payload: dict) -> None:  # type: ignore[type-arg]
        got.append(b"called")

    for i, bomb in enumerate(bombs):
        batches.push(*(task(kind, f"{kind}-{i}", payload=bomb, content_type=content_type)
                       for kind in ("take.bytes", "take.json")))  # fmt: skip
    report = batches.run(take_bytes, take_json, concurrency=1)

    assert got == bombs
    assert [letter["id"] for letter in report.tally.dead_letters] == [f"take.json-{i}" for i in range(4)]
    assert not spied.exists()


def test_deep_json_is_a_dead_letter(batches: Batches) -> None:
    @job("read")
    def read(payload: dict) -> None:  # type: ignore[type-arg]
        raise AssertionError

    deep = [b"[" * 500_000, b'{"a":' * 180_000, b"[" * 250_000 + b"]" * 250_000, b"1" * 1_000_000]
    batches.push(*(task("read", f"{i}", payload=payload) for i, payload in enumerate(deep)))

    report = batches.run(read, concurrency=4)

    assert report.exit_code == 0
    assert sorted(letter["id"] for letter in report.tally.dead_letters) == ["0", "1", "2", "3"]
    assert {letter["reason"] for letter in report.tally.dead_letters} == {"failed"}
    assert sorted(Task.FromString(fields["task"]).payload for fields in batches.dead()) == sorted(deep)


def test_no_source_file_can_run_a_payload() -> None:
    words = re.compile(r"(?<![\w.])(pickle|yaml|eval\(|exec\(|marshal|shelve|__import__)")
    for file in Path(taskbatch.__file__).parent.rglob("*.py"):
        assert not words.search(file.read_text()), file


# -- where code comes from --------------------------------------------------------------------------------------

NAMES = ["json", "redis", "click", "logging", "taskbatch", "google", "sitecustomize", "prometheus_client"]


@pytest.mark.parametrize("how", ["program", "module"])
def test_the_current_directory_replaces_nothing_installed(cli: Cli, batches: Batches, how: str) -> None:
    spied = cli.cwd / "spied"
    for name in NAMES:
        (cli.cwd / f"{name}.py").write_text(f"open({str(spied)!r}, 'a').write({name!r})\nraise SystemExit(99)\n")
    (cli.cwd / "jobs.py").write_text("from taskbatch import job\n@job('work')\ndef work(): import json, redis\n")
    batches.push(task("work", "one"))
    # `python -m` puts the current directory first by itself, unless it is told not to.
    command = {"program": cli.command, "module": [sys.executable, "-P", "-m", "taskbatch"]}[how]
    if how == "module" and sys.version_info < (3, 11):
        pytest.skip("-P came with Python 3.11")
    cli.command = command

    result = cli("run", "--wait", "0s", "--report", "json", "-v", "--redis-url", batches.server.url)

    assert result.returncode == 0, result.stderr
    assert result.json()["succeeded"] == 1
    assert not spied.exists()


def test_jobs_by_name_are_the_installed_ones(cli: Cli, batches: Batches) -> None:
    """A directory that is called like an installed package is not it."""
    (cli.cwd / "wave.py").write_text("from taskbatch import job\n@job('work')\ndef work(): pass\n")

    result = cli("jobs", "check", "--jobs", "wave")

    assert result.returncode == 78
    assert "no jobs in 'wave'" in result.stderr


def test_importing_taskbatch_changes_no_path(tmp_path: Path) -> None:
    code = "import sys; before = list(sys.path); import taskbatch.batch, taskbatch.cli.run; print(sys.path == before)"

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"


# -- names --------------------------------------------------------------------------------------------------------

WRONG = ["", "a b", "a{b}", "a}:pending", "a:b", "a*", "a\n", "a/b", "ä", "x" * 65, "a'b", "a,b;"]


@pytest.mark.parametrize("name", WRONG)
def test_a_queue_name_that_could_be_more_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="queue name"):
        Keys("taskbatch", name)


@pytest.mark.parametrize("name", ["a b", "a{b}", "a}:pending", "a:b", "a\x1bb", "x" * 65])
@pytest.mark.parametrize("verb", ["run", "status", "dead list", "queue pause why", "metrics", "enqueue t"])
def test_the_command_line_refuses_it_too(cli: Cli, name: str, verb: list[str]) -> None:
    result = cli(*verb.split(), "-q", name, "--redis-url", "redis://127.0.0.1:1")

    assert result.returncode == 2, result.stderr
    assert "queue name" in result.stderr
    assert result.stderr.removesuffix("\n").isprintable()


@pytest.mark.parametrize("name", ["a{b}", "{", "a*", "a\nb"])
def test_a_prefix_cannot_move_keys_to_another_slot(name: str) -> None:
    with pytest.raises(ConfigError, match="prefix"):
        Keys(name, "default")


@pytest.mark.parametrize("kind", ["", "a b", "a\n", "a\x1b", "ä", "x" * 129, 'a"}', "a{"])
def test_a_type_that_would_be_no_label_is_refused(batches: Batches, kind: str) -> None:
    client = Client(batches.server.url)

    with pytest.raises(ConfigError, match="task type"):
        client.enqueue(kind)
    with pytest.raises(ConfigError, match="job name"):
        job(kind)(lambda: None)


def test_a_foreign_type_makes_no_label_and_no_field(cli: Cli, batches: Batches) -> None:
    kinds = [f"made-up-{i}" for i in range(300)] + ['x"} 1\nevil_metric 1', "tasks:succeeded:note 1000"]
    batches.push(*(task(kind, f"{i}", unroutable=19) for i, kind in enumerate(kinds)))

    @job("note")
    def note() -> None: ...

    batches.run(note)

    assert batches.totals()["tasks:dead:unknown"] == len(kinds)
    assert not [name for name in batches.totals() if "made-up" in name or "evil" in name or "note" in name]
    text = cli("metrics", env={"TASKBATCH_REDIS_URL": batches.server.url}).stdout
    assert "evil" not in text
    assert "made-up" not in text
    assert json.dumps(text).count("unknown") < 40
