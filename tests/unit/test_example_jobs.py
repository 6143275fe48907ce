"""The example jobs do what they say, and stand being run twice."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs import command
from taskbatch.invocation import BadPayload, Failed, Result, Succeeded, Watch, invoke
from taskbatch.registry import Registry, load_jobs
from taskbatch.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_jobs([str(ROOT / "jobs")], entry_points=False)


def run(registry: Registry, name: str, payload: Any, task_id: str = "t-1") -> Result:
    return invoke(registry[name], Task(id=task_id, type=name, payload=json.dumps(payload).encode()), Watch())


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_there_are_five_of_them(registry: Registry) -> None:
    assert sorted(registry) == ["command.run", "file.archive", "ledger.book", "report.summarise", "webhook.post"]


class Endpoint(BaseHTTPRequestHandler):
    """Answers with the status in the path, and keeps what it was sent."""

    seen: list[tuple[str, str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, self.headers["Idempotency-Key"], body))
        self.send_response(int(self.path[1:]))
        self.send_header("Location", "/200")
        self.end_headers()

    def do_GET(self) -> None:
        self.seen.append((self.path, "", "GET"))

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.seen = []
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_sent_with_the_same_key_each_time(registry: Registry, endpoint: str) -> None:
    hook = {"url": f"{endpoint}/204", "body": {"order": 7}, "headers": {"Idempotency-Key": "mine"}}

    assert run(registry, "webhook.post", hook) == Succeeded()
    assert run(registry, "webhook.post", hook) == Succeeded()
    assert Endpoint.seen == [("/204", "t-1", {"order": 7})] * 2


@pytest.mark.parametrize("status", [301, 307, 400, 503])
def test_a_webhook_that_is_not_accepted_has_failed_and_is_not_redirected(
    registry: Registry, endpoint: str, status: int
) -> None:
    result = run(registry, "webhook.post", {"url": f"{endpoint}/{status}", "body": {}})

    assert result.error.startswith(f"urllib.error.HTTPError: HTTP Error {status}")
    assert len(Endpoint.seen) == 1


def test_a_webhook_without_a_task_id_has_the_key_of_its_payload(registry: Registry, endpoint: str) -> None:
    for body in ({"n": 1}, {"n": 1}, {"n": 2}):
        run(registry, "webhook.post", {"url": f"{endpoint}/200", "body": body}, task_id="")

    keys = [key for _, key, _ in Endpoint.seen]
    assert keys[0] == keys[1] != keys[2]


def test_a_webhook_goes_nowhere_but_to_the_web(registry: Registry) -> None:
    assert run(registry, "webhook.post", {"url": "file:///etc/passwd", "body": {}}) == BadPayload(
        "payload: url must be http:// or https://"
    )


def test_a_report_adds_up_its_groups_and_is_the_same_the_second_time(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPORT_ROOT", str(tmp_path))
    (tmp_path / "sales.csv").write_text("region,amount\nnorth,1.10\nsouth,2\nnorth,2.20\n")
    report = {"source": "sales.csv", "group": "region", "sum": "amount"}

    for _ in range(2):
        assert run(registry, "report.summarise", report) == Succeeded()
        assert json.loads((tmp_path / "sales.csv.summary.json").read_text()) == {
            "north": {"rows": 2, "sum": "3.30"},
            "south": {"rows": 1, "sum": "2"},
        }
    assert names(tmp_path) == ["sales.csv", "sales.csv.summary.json"]
    assert (tmp_path / "sales.csv.summary.json").stat().st_mode == (tmp_path / "sales.csv").stat().st_mode


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("report.summarise", {"source": "../secret.csv", "group": "a", "sum": "b"}),
        ("report.summarise", {"source": "/etc/passwd", "group": "a", "sum": "b"}),
        ("file.archive", {"path": "../secret.csv"}),
        ("file.archive", {"path": "link.csv"}),
    ],
)
def test_a_payload_cannot_leave_the_directory(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, payload: dict[str, str]
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.csv").write_text("a,b\nx,1\n")
    (tmp_path / "root" / "link.csv").symlink_to(tmp_path / "secret.csv")
    monkeypatch.setenv("REPORT_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("ARCHIVE_ROOT", str(tmp_path / "root"))

    assert run(registry, name, payload).error.startswith("PermissionError: ")
    assert names(tmp_path) == ["root", "secret.csv"]


def balance(path: Path) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT account, cents FROM balances ORDER BY account").fetchall()


def test_a_booking_counts_once_however_often_its_task_runs(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_DB", str(tmp_path / "ledger.db"))

    for task_id in ("t-1", "t-1", "t-2", "t-1"):
        assert run(registry, "ledger.book", {"account": "anna", "cents": 100}, task_id) == Succeeded()
    run(registry, "ledger.book", {"account": "ben", "cents": -5}, "t-3")

    assert balance(tmp_path / "ledger.db") == [("anna", 200), ("ben", -5)]
    assert not run(registry, "ledger.book", {"account": "anna", "cents": 1}, "").ok


def test_bookings_of_many_threads_wait_for_each_other(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_DB", str(tmp_path / "ledger.db"))
    results: list[Result] = []

    def book(thread: int) -> None:
        results.extend(
            run(registry, "ledger.book", {"account": "anna", "cents": 1}, f"{(thread + n) % 20}") for n in range(20)
        )

    threads = [threading.Thread(target=book, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [Succeeded()] * 80
    assert balance(tmp_path / "ledger.db") == [("anna", 20)]


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with some commands on it; returns a file that they may write."""
    commands = {
        "write": ["/bin/sh", "-c", f'echo "$@" > {tmp_path}/out', "sh"],
        "fail": ["/bin/sh", "-c", "echo so sorry >&2; exit 3"],
        "hang": ["/bin/sh", "-c", f"sleep 60 & echo $! > {tmp_path}/out; wait"],
    }
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    monkeypatch.setenv("COMMANDS_FILE", str(tmp_path / "commands.json"))
    return tmp_path / "out"


def test_a_command_gets_its_arguments_and_no_shell_reads_them(registry: Registry, allowed: Path) -> None:
    assert run(registry, "command.run", {"name": "write", "arguments": ["a b", "$(id)"]}) == Succeeded()
    assert allowed.read_text() == "a b $(id)\n"


def test_a_command_that_fails_says_what_it_printed(registry: Registry, allowed: Path) -> None:
    assert run(registry, "command.run", {"name": "fail"}).error == "RuntimeError: /bin/sh ended with 3: so sorry"


@pytest.mark.parametrize(
    ("payload", "result", "error"),
    [
        ({"name": "rm"}, Failed, "PermissionError: rm is not on the list of allowed commands"),
        ({"name": "write", "arguments": ["--help"]}, BadPayload, "payload: an argument must not look like an option"),
    ],
)
def test_a_payload_cannot_choose_a_program_or_an_option(
    registry: Registry, allowed: Path, payload: Any, result: type, error: str
) -> None:
    answer = run(registry, "command.run", payload)

    assert (type(answer), answer.error) == (result, error)
    assert not allowed.exists()


def test_a_command_over_its_time_is_killed_with_all_it_started(
    registry: Registry, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = registry["command.run"].function.__globals__
    monkeypatch.setitem(module, "TIMEOUT", 0.5)

    assert run(registry, "command.run", {"name": "hang"}).error.startswith("subprocess.TimeoutExpired")
    assert is_gone(int(allowed.read_text()))


def test_a_command_is_killed_when_the_job_is_interrupted(registry: Registry, allowed: Path) -> None:
    watch = Watch()
    results: list[Result] = []
    task = Task(payload=b'{"name": "hang"}')
    thread = threading.Thread(target=lambda: results.append(invoke(registry["command.run"], task, watch)))
    thread.start()
    wait_for(lambda: allowed.exists() and allowed.read_text().strip())

    assert watch.expire()
    thread.join(10)

    assert results[0].timed_out
    assert is_gone(int(allowed.read_text()))


def wait_for(condition: Any, seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Return whether the process ended; where nobody collects orphans it stays behind as a zombie."""

    def ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    wait_for(ended)
    return True


def test_the_command_module_ends_its_program_before_its_job_ends() -> None:
    assert command.run.timeout > command.TIMEOUT


def test_an_archived_file_can_be_read_back_and_is_gone(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVE_ROOT", str(tmp_path))
    (tmp_path / "app.log").write_bytes(b"line\n" * 1000)

    assert run(registry, "file.archive", {"path": "app.log"}) == Succeeded()
    assert run(registry, "file.archive", {"path": "app.log"}) == Succeeded()

    assert names(tmp_path) == ["app.log.gz"]
    assert gzip.decompress((tmp_path / "app.log.gz").read_bytes()) == b"line\n" * 1000


def test_archiving_after_a_crash_in_between_makes_the_same_archive(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVE_ROOT", str(tmp_path))
    (tmp_path / "app.log").write_bytes(b"line\n")
    run(registry, "file.archive", {"path": "app.log"})
    first = (tmp_path / "app.log.gz").read_bytes()

    (tmp_path / "app.log").write_bytes(b"line\n")  # as if it had not been removed
    run(registry, "file.archive", {"path": "app.log"})

    assert (tmp_path / "app.log.gz").read_bytes() == first
    assert not (tmp_path / "app.log").exists()


def test_archiving_what_is_not_there_has_failed(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVE_ROOT", str(tmp_path))

    assert run(registry, "file.archive", {"path": "no.log"}).error.startswith("FileNotFoundError")
    assert names(tmp_path) == []
