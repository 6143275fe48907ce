"""A real Pushgateway and a real Prometheus for tests."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.containers import start_container
from tests.daemon import Daemon, free_port, wait_until
from tests.servers import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

# A proxy of the environment must not come between a test and its own server.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def http(url: str, *, method: str = "GET", timeout: float = 10.0) -> str:
    """Return the body of the answer; urllib.error.HTTPError for a status of 400 and more."""
    with _direct.open(urllib.request.Request(url, method=method), timeout=timeout) as answer:
        return str(answer.read().decode())


def listens(port: int) -> bool:
    """Whether somebody accepts connections on that loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


def succeeds(url: str) -> bool:
    """Whether `url` answers with success."""
    try:
        http(url, timeout=1.0)
    except OSError:
        return False
    return True


def program(name: str) -> str:
    """Return the path of an installed program, or raise UnavailableError."""
    path = shutil.which(name)
    if path is None:
        package = "prometheus" if name == "promtool" else name
        message = f"{name} is not installed: apt-get install {package}"
        raise UnavailableError(message)
    return path


class Pushgateway:
    """One gateway on a loopback port; `web_config` is the text of a --web.config.file (login, TLS)."""

    def __init__(self, extra: Sequence[str] = (), *, web_config: str = "") -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="taskbatch-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [program("prometheus-pushgateway"), f"--web.listen-address=127.0.0.1:{self.port}"]
        command += ["--web.enable-admin-api", *extra]
        if web_config:
            (self.directory / "web.yml").write_text(web_config)
            command.append("--web.config.file=web.yml")
        # Asked on the connection level only: with a login or TLS, a plain request would be refused.
        self.daemon = Daemon(command, self.directory, lambda: listens(self.port))

    def start(self) -> None:
        self.daemon.start()

    def metrics(self) -> str:
        """Return what Prometheus would scrape, in the text format."""
        return http(f"{self.url}/metrics")

    def groups(self) -> list[dict[str, Any]]:
        """Return every pushed group: its `labels`, and for each metric its type and samples."""
        return list(json.loads(http(f"{self.url}/api/v1/metrics"))["data"])

    def wipe(self) -> None:
        """Forget all groups."""
        http(f"{self.url}/api/v1/admin/wipe", method="PUT")

    def close(self) -> None:
        self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class ContainerPushgateway(Pushgateway):
    """The same in a container."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._container = start_container("pushgateway", 9091, self.port, ["--web.enable-admin-api"])

    def start(self) -> None:
        wait_until(lambda: succeeds(f"{self.url}/-/ready"), seconds=30.0, what="pushgateway")

    def close(self) -> None:
        self._container.stop()


class Prometheus:
    """A Prometheus on a loopback port that works by `config`, the text of a prometheus.yml."""

    def __init__(self, config: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="taskbatch-"))
        (self.directory / "prometheus.yml").write_text(config)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        command.append(f"--web.listen-address=127.0.0.1:{self.port}")
        self.daemon = Daemon(command, self.directory, lambda: succeeds(f"{self.url}/-/ready"))

    def start(self) -> None:
        self.daemon.start(seconds=60.0)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the instant vector of a PromQL expression: its `metric` labels and its `value` pairs."""
        answer = http(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        return list(json.loads(answer)["data"]["result"])

    def value(self, expression: str) -> float | None:
        """Return the value of an expression that has one series, None when there is none (yet)."""
        match self.query(expression):
            case []:
                return None
            case [series]:
                return float(series["value"][1])
            case several:
                message = f"{expression}: {len(several)} series"
                raise ValueError(message)

    def close(self) -> None:
        self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
