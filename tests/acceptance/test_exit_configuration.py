"""Exit code 78: what a person has to change. One line says what, the report says it too, nothing has moved."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.ending import JOBS, PENDING, failed_with, once, problem, with_jobs
from tests.lua.keyspace import dump

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis

    from tests.conftest import StartServer
    from tests.program import Cli
    from tests.servers import Server

KEYS = {
    **dict.fromkeys(("pending", "recovered", "suspects"), "list"),
    **dict.fromkeys(("runs", "scheduled"), "zset"),
    **dict.fromkeys(("runs:info", "config", "totals", "limit"), "hash"),
    **dict.fromkeys(("dead", "history"), "stream"),
    **dict.fromkeys(("totals:push", "paused"), "string"),
}
"""Every key that is known before a run has its id."""


@pytest.fixture
def client(server: Server) -> redis.Redis:
    client = server.client()
    client.lpush(PENDING, b"\n\x01a\x12\x02ok")
    return client


@pytest.fixture
def here(cli: Cli, server: Server) -> Cli:
    return with_jobs(cli, server.url)


# -- jobs

BAD_JOBS = {
    "no such module": (None, "jobs"),
    "an import that fails": ("import no_such_library", "No module named 'no_such_library'"),
    "a syntax error": ("def (:", "jobs.py"),
    "an error": ("1 / 0", "ZeroDivisionError"),
    "no jobs": ("import taskbatch", "no jobs in 'jobs'"),
    "a name twice": (JOBS + "\n@job('ok')\ndef other(): pass\n", "two jobs are named 'ok'"),
    "no valid name": (JOBS + "\n@job('not valid')\ndef other(): pass\n", "'not valid' is not valid"),
    "a bad limit": (
        "from taskbatch import RateLimit, job\n@job('a', rate_limit=RateLimit('many'))\ndef a(): pass",
        "many",
    ),
    "parameters nobody can give": ("from taskbatch import job\n@job('a')\ndef a(x, y, z): pass", "job 'a'"),
}


@once
@pytest.mark.parametrize("what", BAD_JOBS)
def test_78_for_jobs_that_cannot_be_loaded(here: Cli, client: redis.Redis, what: str) -> None:
    source, said = BAD_JOBS[what]
    path: Path = here.cwd / "jobs.py"
    if source is None:
        path.unlink()
    else:
        path.write_text(source)
    before = dump(client)

    run, check = here("run"), here("jobs", "check")

    assert said in failed_with(run, 78)
    assert (check.returncode, check.stdout, problem(check)) == (78, "", problem(run))
    assert dump(client) == before


@once
def test_78_for_a_module_that_is_named_and_not_there(here: Cli) -> None:
    assert "no_such_module" in failed_with(here("run", "--jobs", "no_such_module"), 78)


# -- keys


@pytest.mark.parametrize("name", KEYS)
def test_78_for_a_key_of_a_wrong_type(here: Cli, client: redis.Redis, name: str) -> None:
    key = f"taskbatch:{{default}}:{name}"
    client.delete(key)
    if KEYS[name] == "string":
        client.rpush(key, "not ours")
    else:
        client.set(key, "not ours")
    before = dump(client)

    line = failed_with(here("run"), 78)

    assert line.startswith(f"WRONGTYPE {key} is a ")
    assert f"not a {KEYS[name]}" in line
    assert dump(client) == before


@once
def test_78_for_a_deduplication_key_of_a_wrong_type(here: Cli, client: redis.Redis) -> None:
    client.rpush("taskbatch:{default}:unique:k", "not ours")
    before = dump(client)

    done = here("enqueue", "ok", "--unique-key", "k")

    assert (done.returncode, done.stdout) == (78, "")
    assert "WRONGTYPE taskbatch:{default}:unique:k" in problem(done)
    assert dump(client) == before


def test_78_for_a_queue_of_a_newer_schema(here: Cli, client: redis.Redis) -> None:
    client.hset("taskbatch:{default}:config", "schema", 2)
    before = dump(client)

    assert "schema 2" in failed_with(here("run"), 78)
    assert dump(client) == before


# -- the server and who we are


def test_78_for_a_password_that_is_missing_or_wrong(here: Cli, own_server: StartServer) -> None:
    server = own_server(requirepass="open sesame")
    url = f"redis://127.0.0.1:{server.port}/0"

    missing = here("run", "--redis-url", url)
    wrong = here("run", "--redis-url", url, env={"TASKBATCH_REDIS_PASSWORD": "guess-work"})

    assert "Authentication required" in failed_with(missing, 78)
    assert "refuses us" in failed_with(wrong, 78)
    assert "guess-work" not in wrong.stdout + wrong.stderr
    assert server.client().keys("*") == []
    assert here("run", "--redis-url", url, env={"TASKBATCH_REDIS_PASSWORD": "open sesame"}).returncode == 0


def test_78_for_a_right_that_is_missing(here: Cli, own_server: StartServer) -> None:
    server = own_server()
    client = server.client()
    client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-zadd")
    client.lpush(PENDING, b"\n\x01a\x12\x02ok")
    before = dump(client)

    done = here("run", env={"TASKBATCH_REDIS_URL": f"redis://app:secret@127.0.0.1:{server.port}/0"})

    assert "zadd" in failed_with(done, 78).lower()
    assert dump(client) == before


@once
def test_78_for_a_database_that_is_not_there(here: Cli, server: Server) -> None:
    assert "DB index" in failed_with(here("run", "--redis-url", f"redis://127.0.0.1:{server.port}/99"), 78)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:6379",
        "redis://127.0.0.1:port",
        "redis://127.0.0.1:6379?decode_responses=true",
        "127.0.0.1",
    ],
)
def test_78_for_a_url_that_is_none(cli: Cli, url: str) -> None:
    with_jobs(cli, url)
    assert "Redis URL" in failed_with(cli("run"), 78)


@pytest.fixture
def old_server() -> Iterator[str]:
    """The URL of something that says it is Redis 6.2, which cannot be had here; it answers one question."""
    info = b"# Server\r\nredis_version:6.2.14\r\nuptime_in_seconds:100\r\n"
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            asked = b""
            while b"INFO" not in asked:
                asked += connection.recv(1024)
            connection.sendall(b"$%d\r\n%s\r\n" % (len(info), info))
            connection.recv(1024)

    thread = threading.Thread(target=answer)
    thread.start()
    with closing(listener):
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        thread.join(10)


def test_78_for_a_server_that_is_too_old(cli: Cli, old_server: str) -> None:
    with_jobs(cli, old_server)

    line = failed_with(cli("run"), 78)

    assert "is redis 6.2.14; Redis 7.0 or Valkey 7.2 or later is needed" in line


# -- files and secrets


@once
def test_78_for_a_secret_that_cannot_be_read(here: Cli) -> None:
    line = failed_with(here("run", env={"TASKBATCH_REDIS_PASSWORD_FILE": "/nowhere/password"}), 78)

    assert "TASKBATCH_REDIS_PASSWORD_FILE: cannot read '/nowhere/password'" in line


@once
def test_78_for_a_gateway_that_can_be_none(here: Cli, client: redis.Redis) -> None:
    before = dump(client)

    assert "http://" in failed_with(here("run", "--pushgateway", "ftp://127.0.0.1"), 78)
    assert dump(client) == before
