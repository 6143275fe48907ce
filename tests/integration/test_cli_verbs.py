"""The verbs on a real server, through the program as a user starts it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch.task import Task, parse

if TYPE_CHECKING:
    from pathlib import Path

    import redis

    from tests.program import Cli
    from tests.servers import Server

JOBS = """
import sys, time
from taskbatch import RateLimit, job

print("printed by the module")

@job("ok", timeout=30, rate_limit=RateLimit("100/1m"))
def ok(payload):
    print("printed by a job")

@job("free")
def free(payload):
    print("printed by a job" * 100)

@job("bad", max_attempts=1)
def bad(payload):
    raise ValueError("no \\x1b[31m good")

@job("slow")
def slow(payload):
    time.sleep(payload)
"""


@pytest.fixture
def client(server: Server) -> redis.Redis:
    return server.client()


@pytest.fixture
def here(cli: Cli, server: Server) -> Cli:
    """The program in a directory with jobs, told where the server is."""
    (cli.cwd / "jobs.py").write_text(JOBS)
    cli.env["TASKBATCH_REDIS_URL"] = server.url
    return cli


def pending(client: redis.Redis, queue: str = "default") -> list[Task]:
    """Return what is pending, next first."""
    raws = client.lrange(f"taskbatch:{{{queue}}}:pending", 0, -1)
    return [task for raw in reversed(raws) if (task := parse(raw))]


# -- enqueue


def test_enqueue_prints_the_id_and_sends_the_payload_as_it_was_typed(here: Cli, client: redis.Redis) -> None:
    done = here("enqueue", "ok", '{"b": 1.50, "a": "ä"}', "-q", "mail", "--header", "k=v=w", "--max-attempts", "3")

    (task,) = pending(client, "mail")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{task.id}\n", "")
    assert task.payload == '{"b": 1.50, "a": "ä"}'.encode()
    assert (dict(task.headers), task.max_attempts) == ({"k": "v=w"}, 3)


def test_enqueue_later_until_and_quietly(here: Cli, client: redis.Redis) -> None:
    done = here("enqueue", "ok", "--delay", "1h", "--expires", "2h", "--quiet")

    assert (done.returncode, done.stdout) == (0, "")
    assert client.zcard("taskbatch:{default}:scheduled") == 1
    assert pending(client) == []


def test_enqueue_of_a_file(here: Cli, client: redis.Redis) -> None:
    (here.cwd / "payload.json").write_text('\n{"a": 1}\n')
    (here.cwd / "payload.bin").write_bytes(b"\x00\xff")

    here("enqueue", "ok", "--file", "payload.json")
    here("enqueue", "ok", "--file", "payload.bin", "--raw")

    assert [(task.payload, task.content_type) for task in pending(client)] == [
        (b'{"a": 1}', "application/json"),
        (b"\x00\xff", "application/octet-stream"),
    ]


def test_a_duplicate_prints_the_holder_and_is_no_error_unless_strict(here: Cli, client: redis.Redis) -> None:
    first = here("enqueue", "ok", "--unique-key", "k")
    second = here("enqueue", "ok", "--unique-key", "k")
    third = here("enqueue", "ok", "--unique-key", "k", "--strict")

    assert first.stdout == second.stdout == third.stdout
    assert [first.returncode, second.returncode, third.returncode] == [0, 0, 1]
    assert len(pending(client)) == 1


def test_lines_on_stdin_are_tasks(here: Cli, client: redis.Redis) -> None:
    done = here("enqueue", "ok", "-", stdin="".join(f"{n}\n\n" for n in range(2500)))

    assert done.returncode == 0
    assert [int(task.payload) for task in pending(client)] == list(range(2500))
    assert done.stdout.split() == [task.id for task in pending(client)]


def test_a_bad_line_is_named_and_nothing_after_it_is_enqueued(here: Cli, client: redis.Redis) -> None:
    lines = [*map(str, range(1500)), '{"a":', *map(str, range(5))]

    done = here("enqueue", "ok", "-", "--quiet", stdin="\n".join(lines))

    assert done.returncode == 2
    count = len(pending(client))
    assert done.stderr.startswith("taskbatch: error: line 1501 is not JSON: Expecting value at column 6")
    assert f"; {count} tasks were enqueued" in done.stderr
    assert [int(task.payload) for task in pending(client)] == list(range(count))


def test_a_payload_beyond_the_cap_is_refused(here: Cli, client: redis.Redis) -> None:
    done = here("enqueue", "ok", "-", stdin=json.dumps("x" * 1_100_000))
    assert done.returncode == 2
    assert "0 tasks were enqueued" in done.stderr
    assert pending(client) == []


# -- run and drain


def test_stdout_holds_the_report_and_nothing_else(here: Cli) -> None:
    here("enqueue", "ok", "1")

    done = here("run", "--report", "json", "--wait", "0s")

    assert done.returncode == 0
    assert done.json()["succeeded"] == 1
    assert "printed by the module" in done.stderr
    assert "printed by a job" in done.stderr


def test_quiet_says_nothing_on_success(here: Cli) -> None:
    (here.cwd / "jobs.py").write_text(JOBS.replace("print(", "str("))
    here("enqueue", "ok", "1")
    done = here("run", "--quiet", "--wait", "0s")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_quiet_tells_of_a_failure(here: Cli) -> None:
    here("enqueue", "bad")
    done = here("run", "--quiet", "--wait", "0s", "--fail-on", "dead")
    assert done.returncode == 1
    assert "1 dead" in done.stdout
    assert "ValueError: no \\\\x1b[31m good" in done.stderr


@pytest.mark.parametrize("redirect", [">&- 2>&-", ">/dev/full 2>/dev/full", "2>&1 | head -c1 >/dev/null"])
def test_a_broken_output_changes_nothing(here: Cli, client: redis.Redis, redirect: str) -> None:
    here("enqueue", "free", "-", "--quiet", stdin="1\n" * 300)
    here.command = ["bash", "-c", f'set -o pipefail; "$@" {redirect}', "bash", *here.command]

    assert here("drain").returncode == 0

    totals = client.hgetall("taskbatch:{default}:totals")
    assert totals[b"tasks:succeeded:free"] == b"300"
    assert b"tasks:retried:free" not in totals


def test_a_failed_connection_is_reported_as_json_too(here: Cli) -> None:
    done = here("run", "--report", "json", "--redis-url", "redis://:p4ssword@127.0.0.1:1")
    assert done.returncode == 69
    assert (done.json()["exit_code"], done.json()["stop_reason"]) == (69, "error")
    assert re.search(r"^taskbatch: error: cannot reach Redis at redis://\*\*\*@127.0.0.1:1", done.stderr, re.MULTILINE)
    assert "p4ssword" not in done.stdout + done.stderr


def test_a_secret_that_cannot_be_read_is_reported_as_json_too(here: Cli) -> None:
    done = here("run", "--report", "json", env={"TASKBATCH_REDIS_PASSWORD_FILE": "missing"})
    assert (done.returncode, done.json()["exit_code"]) == (78, 78)
    assert "TASKBATCH_REDIS_PASSWORD_FILE: cannot read 'missing'" in done.stderr


def test_a_signal_ends_a_run_that_hangs_in_a_job(here: Cli, client: redis.Redis) -> None:
    here("enqueue", "slow", "60")
    process = here.spawn("run", "--report", "json", "--grace", "200ms")
    while not client.exists("taskbatch:{default}:runs") or client.llen("taskbatch:{default}:pending"):
        time.sleep(0.02)
    time.sleep(0.2)

    process.signal(signal.SIGTERM)
    done = process.wait(10)

    assert (done.returncode, done.json()["stop_reason"]) == (75, "signal")
    assert len(pending(client)) == 1


def test_a_job_that_leaks_a_thread_and_closes_everything_ends_its_run_all_the_same(here: Cli) -> None:
    (here.cwd / "jobs.py").write_text(ABUSIVE)
    here("enqueue", "abusive")
    started = time.monotonic()

    done = here("run", "--report", "json", "--wait", "0s")

    assert (done.returncode, done.json()["succeeded"]) == (0, 1)
    assert time.monotonic() - started < 10


ABUSIVE = """
import os, sys, threading, time
from taskbatch import job

@job("abusive")
def abusive(payload):
    threading.Thread(target=time.sleep, args=(60,)).start()
    sys.stdout.close()
    sys.stderr.close()
    os.close(1)
    os.close(2)
"""


def test_a_person_sees_one_progress_line_and_then_the_report(here: Cli) -> None:
    here("enqueue", "slow", "-", "--quiet", stdin="0.02\n" * 100)

    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(here.cwd)
        os.execve(here.command[0], [*here.command, "drain", "-c", "4"], here.environment())  # noqa: S606 - ours
    shown = b""
    while chunk := read(terminal):
        shown += chunk
    os.close(terminal)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    text = shown.decode()
    assert re.search(r"\r\x1b\[K\d+ done · \d+/s", text)
    assert text.rpartition("\x1b[K")[2].startswith("run ")


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other side is closed
        return b""


# -- looking around


def test_status_shows_all_queues_or_those_named(here: Cli, client: redis.Redis) -> None:
    here("enqueue", "ok", "-q", "mail")
    here("enqueue", "ok", "-q", "reports")
    here("queue", "pause", "up\x1bgrade", "-q", "mail", "--for", "1h")
    here("queue", "limit", "50/1s", "-q", "mail")
    client.sadd("taskbatch:queues", "not a name!")

    text = here("status").stdout
    named = here("status", "-q", "mail", "-q", "new", "--json").json()

    assert re.search(r"^mail +1 .* paused for (1h|59m \d+s): up\\x1bgrade; limit 50/1s$", text, re.MULTILINE)
    assert re.search(r"^reports +1 ", text, re.MULTILINE)
    assert "not a name" not in text
    assert [(one["queue"], one["pending"], one["paused"], one["limit"]) for one in named["queues"]] == [
        ("mail", 1, "up\x1bgrade", "50/1s"),
        ("new", 0, None, None),
    ]


def test_status_of_nothing(here: Cli) -> None:
    assert here("status").stdout == "no queues yet\n"
    assert here("status", "--json").json() == {"schema_version": 1, "queues": []}


def test_status_counts_what_is_to_be_reaped_and_reap_reaps_it(here: Cli, client: redis.Redis) -> None:
    client.sadd("taskbatch:queues", "mail")
    client.zadd("taskbatch:{mail}:runs", {"gone": 1000})
    client.lpush("taskbatch:{mail}:processing:gone:0", Task(id="t", type="ok").SerializeToString())

    assert "1 crashed run, 1 task to reap" in here("status").stdout
    done = here("reap", "--lease", "3s", "--json")
    if done.json()["queues"] == {}:  # the server has only just started
        time.sleep(3)
        done = here("reap", "--lease", "3s", "--json")

    assert done.json()["queues"] == {"mail": {"runs": 1, "recovered": 1, "suspects": 0, "dead": 0, "promoted": 0}}
    assert client.llen("taskbatch:{mail}:recovered") == 1


def test_dead_letters_are_listed_shown_redriven_and_deleted(here: Cli, client: redis.Redis) -> None:
    here("enqueue", "bad", '{"secret": "\\u001b[2J"}')
    here("run", "--wait", "0s")

    listed = here("dead", "list", "--json").json()
    (letter,) = listed["dead"]
    text = here("dead", "list").stdout
    shown = here("dead", "show", letter["task"])
    whole = here("dead", "show", letter["id"], "--json").json()

    assert (listed["count"], letter["reason"], letter["type"]) == (1, "failed", "bad")
    assert "\x1b" not in text + shown.stdout
    assert "\\u001b[2J" in shown.stdout
    assert whole["payload"] == {"secret": "\x1b[2J"}
    assert here("dead", "redrive", "nope").returncode == 1
    assert here("dead", "redrive", letter["id"]).stdout == "1 task redriven\n"
    assert len(pending(client)) == 1

    here("run", "--wait", "0s")
    assert here("dead", "delete", "--all").returncode == 2
    assert here("dead", "delete", "--all", "--yes").stdout == "1 dead letter deleted\n"
    assert here("dead", "list").stdout == "no dead letters\n"


def test_undecodable_bytes_are_shown_in_part_and_in_hexadecimal(here: Cli, client: redis.Redis) -> None:
    client.xadd("taskbatch:{default}:dead", {"task": b"\xff\x1b" * 500, "reason": "undecodable"})

    (letter,) = here("dead", "list", "--json").json()["dead"]
    shown = here("dead", "show", letter["id"]).stdout

    assert "(1000 bytes)" in shown
    assert "ff 1b ff 1b" in shown
    assert "744 bytes more" in shown


def test_a_queue_is_paused_resumed_limited_and_purged(here: Cli, client: redis.Redis) -> None:
    here("enqueue", "ok")
    assert here("queue", "pause", "why").stdout == "default is paused: why\n"
    assert here("run", "--report", "json").json()["stop_reason"] == "paused"
    assert here("queue", "resume").stdout == "default goes on\n"
    assert here("queue", "resume").stdout == "default was not paused\n"

    assert here("queue", "limit").stdout == "none\n"
    assert here("queue", "limit", "50/1s").stdout == "default is limited to 50/1s\n"
    assert here("queue", "limit").stdout == "50/1s\n"
    assert client.hget("taskbatch:{default}:config", "limit") == b"50 1000"
    assert here("queue", "limit", "none").stdout == "default has no limit\n"

    assert here("queue", "purge").returncode == 2
    assert here("queue", "purge", "--yes").stdout == "1 task deleted\n"
    assert pending(client) == []


def test_jobs_are_listed_and_checked(here: Cli) -> None:
    listed = here("jobs", "list", "--json").json()["jobs"]
    assert [one["name"] for one in listed] == ["bad", "free", "ok", "slow"]
    assert listed[2]["rate_limit"]["limit"] == 100
    assert re.search(r"^ok +jobs +30s +5  100/1m$", here("jobs", "list").stdout, re.MULTILINE)
    assert here("jobs", "check").stdout == "4 jobs: bad, free, ok, slow\n"

    (here.cwd / "jobs.py").write_text("import nothing_of_that_name")
    done = here("jobs", "check")
    assert done.returncode == 78
    assert "nothing_of_that_name" in done.stderr
    assert "Traceback" not in done.stderr


def test_metrics_are_printed_or_written(here: Cli) -> None:
    here("enqueue", "ok")
    here("run", "--wait", "0s")

    printed = here("metrics")
    assert 'taskbatch_tasks_total{outcome="succeeded",queue="default",type="ok"} 1.0' in printed.stdout

    assert here("metrics", "--push").returncode == 2
    assert here("metrics", "--push", "--textfile", "taskbatch.prom").returncode == 0
    assert (here.cwd / "taskbatch.prom").read_text() == printed.stdout
    refused = here("metrics", "--push", "--pushgateway", "http://127.0.0.1:1")
    assert refused.returncode == 1


def test_a_key_of_a_wrong_type_is_a_configuration_error(here: Cli, client: redis.Redis) -> None:
    client.sadd("taskbatch:queues", "default")
    client.set("taskbatch:{default}:pending", "not ours")
    for verb in (["status"], ["metrics"], ["enqueue", "ok", "--delay", "1s"]):
        done = here(*verb)
        assert (done.returncode, done.stdout) == (78, "")
        assert re.fullmatch(r"taskbatch: error: .*WRONGTYPE.*\n", done.stderr)


def test_an_embedded_server_is_shared_by_successive_commands(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory: Path = tmp_path_factory.mktemp("embedded")
    (cli.cwd / "jobs.py").write_text(JOBS)
    cli.env["TASKBATCH_REDIS_URL"] = f"embedded:{directory}"

    assert cli("enqueue", "ok").returncode == 0
    assert cli("run", "--report", "json").json()["succeeded"] == 1
    assert cli("status", "--json").json()["queues"][0]["pending"] == 0
