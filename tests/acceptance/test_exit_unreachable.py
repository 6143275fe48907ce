"""Exit code 69: Redis cannot be reached, or takes nothing; nothing was claimed or enqueued."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.ending import PENDING, failed_with, problem, with_jobs
from tests.daemon import free_port
from tests.lua.keyspace import dump

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import StartServer
    from tests.program import Cli


@pytest.fixture
def black_hole() -> Iterator[str]:
    """The URL of a port where connections are taken and nothing is ever answered."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=16)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


@pytest.fixture
def here(cli: Cli) -> Cli:
    return with_jobs(cli, "")


def test_69_when_nobody_listens(here: Cli) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"

    done = here("run", "--redis-url", url)

    assert "Connection refused" in failed_with(done, 69)
    assert url in problem(done)


def test_69_when_there_is_no_such_socket(here: Cli) -> None:
    line = failed_with(here("run", "--redis-url", "unix:///nowhere/redis.sock"), 69)

    assert "/nowhere/redis.sock" in line
    assert "No such file or directory" in line


def test_69_when_there_is_no_such_host(here: Cli) -> None:
    # A name of that domain never has an address.
    assert "redis.invalid" in failed_with(here("run", "--redis-url", "redis://redis.invalid/0"), 69)


def test_69_when_nothing_is_ever_answered_and_in_time(here: Cli, black_hole: str) -> None:
    started = time.monotonic()

    done = here("run", "--redis-url", black_hole, "--max-runtime", "5s", "--grace", "5s")

    assert "Timeout" in failed_with(done, 69)
    # The budget, the grace, the push and 2 s, and a second for starting Python on a busy machine.
    assert time.monotonic() - started < 5 + 5 + 5 + 2 + 1


def test_every_verb_says_so(here: Cli) -> None:
    here.env["TASKBATCH_REDIS_URL"] = f"redis://127.0.0.1:{free_port()}/0"
    verbs = ("enqueue ok", "reap", "status", "dead list", "queue resume", "metrics")

    # All at once, because each tries for a while.
    for process in [here.spawn(*verb.split()) for verb in verbs]:
        done = process.wait()
        assert (done.returncode, done.stdout) == (69, "")
        assert "Connection refused" in problem(done)


def test_69_when_redis_is_full_and_nothing_half_done(here: Cli, own_server: StartServer) -> None:
    server = own_server()
    client = server.client()
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)
    before = dump(client)
    here.env["TASKBATCH_REDIS_URL"] = server.url

    now = here("enqueue", "ok")
    later = here("enqueue", "ok", "--delay", "1h", "--unique-key", "k")

    assert (now.returncode, later.returncode, now.stdout, later.stdout) == (69, 69, "", "")
    assert "maxmemory" in problem(now)
    assert "maxmemory" in problem(later)
    assert dump(client) == before


def test_a_full_redis_still_drains(here: Cli, own_server: StartServer) -> None:
    server = own_server()
    here.env["TASKBATCH_REDIS_URL"] = server.url
    here("enqueue", "ok")
    server.client().config_set("maxmemory", 1)

    done = here("run")

    assert (done.returncode, done.json()["succeeded"]) == (0, 1)
    assert not server.client().exists(PENDING)
