"""Keeps the embedded server alive while any command uses it, then ends it and itself.

A detached process of its own, which starts the server. It says `ready`, or in one line why there is no
server, and closes stdout. It imports as little as it can: a lone command waits for it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

from taskbatch.embedded.home import Home
from taskbatch.embedded.locks import release, take
from taskbatch.embedded.server import START_TIMEOUT, STOP_TIMEOUT, join_or_launch, stop


def main(directory: str, binary: str) -> None:
    """Supervise the server of this directory; never returns."""
    if os.fork():
        os._exit(0)  # init inherits and reaps the supervisor, whatever becomes of the command
    os.umask(0o077)
    home = Home(Path(directory))
    try:
        take(home.supervisor_lock, STOP_TIMEOUT)
        connection = join_or_launch(home, binary)
    except OSError as error:
        os.write(1, str(error).encode(errors="replace"))
        os._exit(1)
    watcher = threading.Thread(target=leave_with_server, args=(home,), daemon=True)
    watcher.start()
    os.write(1, b"ready")
    os.dup2(0, 1)  # stdin is /dev/null: the command that waits for our word sees the end of it
    wait_until_unused(home)
    stop(home, connection)
    watcher.join(STOP_TIMEOUT)
    os._exit(1)


def wait_until_unused(home: Home) -> None:
    """Return when nobody uses the server, with start.lock taken for good: nobody comes in between."""
    while True:
        try:
            start_lock = take(home.start_lock, START_TIMEOUT)
        except TimeoutError:
            continue
        except FileNotFoundError:  # the whole directory was removed
            return
        users = home.user_files()
        if not users:
            return
        release(start_lock)
        for user in users:
            wait_for(user)


def wait_for(user: Path) -> None:
    """Return when the command that holds this file is gone, and clear the file away."""
    with suppress(FileNotFoundError), user.open("rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        user.unlink()


def leave_with_server(home: Home) -> None:
    """End this process when the server's is gone, however that came about; the next command starts both."""
    lock = os.open(home.server_lock, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with suppress(ChildProcessError):  # a server that was joined is not our child
        os.wait()
    os._exit(0)
