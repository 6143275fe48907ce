"""A Redis server for measuring: loopback, an empty database, nothing on disk."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_TIMEOUT = 10.0


@contextmanager
def redis_server(directory: Path, *, appendonly: bool = False, binary: str = "redis-server") -> Iterator[redis.Redis]:
    """Give a client of a new server, which ends with the block. Raises TimeoutError if it does not come up."""
    port = _free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
    options += ["--appendonly", "yes" if appendonly else "no", "--appendfsync", "everysec"]
    with (directory / "redis.log").open("wb") as log:
        process = subprocess.Popen([binary, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        client = redis.Redis(port=port, socket_timeout=60.0)
        _wait_for(client)
        yield client
        client.close()
    finally:
        process.terminate()
        process.wait(START_TIMEOUT)


def url_of(client: redis.Redis) -> str:
    """Return the URL of the server a client is connected to."""
    settings = client.connection_pool.connection_kwargs
    return f"redis://127.0.0.1:{settings['port']}/0"


def _wait_for(client: redis.Redis) -> None:
    until = time.monotonic() + START_TIMEOUT
    while True:
        try:
            client.ping()
        except redis.ConnectionError as error:
            if time.monotonic() > until:
                raise TimeoutError("redis-server does not answer; its log is beside its data") from error
            time.sleep(0.02)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
