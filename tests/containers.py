"""The same servers in containers, where a container engine with their images is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tests.daemon import StartError, free_port, wait_until
from tests.servers import Server, UnavailableError, answers, connect

if TYPE_CHECKING:
    from collections.abc import Sequence

IMAGES = {
    "redis": ("TASKBATCH_TEST_REDIS_IMAGE", "redis:7.0"),
    "valkey": ("TASKBATCH_TEST_VALKEY_IMAGE", "valkey/valkey:8"),
    "pushgateway": ("TASKBATCH_TEST_PUSHGATEWAY_IMAGE", "prom/pushgateway:v1.5.1"),
}
DATA = "/tmp"  # noqa: S108 - in the container, whose user may write nowhere else for certain


def image(kind: str) -> str:
    """Return the image to use, by the environment variable for that kind if it is set."""
    variable, default = IMAGES[kind]
    return os.environ.get(variable, default)


def start_container(kind: str, inside: int, outside: int, command: Sequence[str]) -> Any:
    """Run `command` in a container with its port `inside` published as `outside`; the engine's container."""
    try:
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - costs half a second
    except ImportError as error:
        message = "testcontainers is not installed: pip install testcontainers"
        raise UnavailableError(message) from error
    try:
        container = DockerContainer(image(kind)).with_bind_ports(inside, outside).with_command(list(command))
        return container.start()
    except Exception as error:
        message = f"no container of {image(kind)}: {error}"
        raise UnavailableError(message) from error


class ContainerServer(Server):
    """A `Server` in a container: the same methods, but no unix socket."""

    _container: Any = None

    @property
    def pid(self) -> int:
        self._inner.reload()
        return int(self._inner.attrs["State"]["Pid"])

    @property
    def running(self) -> bool:
        if self._container is None:
            return False
        self._inner.reload()
        return bool(self._inner.status == "running")

    @property
    def log(self) -> str:
        return str(self._inner.logs().decode(errors="replace"))

    def start(self) -> None:
        if self._container is None:
            self.socket = None
            # A fixed port: a published one that the engine chose would be another after a restart.
            self.port = free_port()
            command = [f"{self.kind}-server", "--dir", DATA, *self.arguments(), *self._extra]
            self._container = start_container(self.kind, 6379, self.port, command)
        elif not self.running:
            self._inner.start()
        wait_until(self._answers_or_ended, seconds=30.0, what=f"container of {image(self.kind)}")

    def stop(self) -> None:
        self._inner.stop(timeout=10)

    def kill(self) -> None:
        self._inner.kill()

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.unpause()

    def close(self) -> None:
        super().close()
        if self._container is not None:
            self._container.stop()

    @property
    def _inner(self) -> Any:
        return self._container.get_wrapped_container()

    def _answers_or_ended(self) -> bool:
        if not self.running:
            raise StartError(self.log)
        return answers(connect(self.password, 1.0, host="127.0.0.1", port=self.port))
