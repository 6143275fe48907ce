"""Fixtures: real servers, a real gateway, the real program. Nothing is mocked.

`server`           a running, empty server; the test runs once with each kind
`own_server`       starts servers of that kind which the test may kill, freeze or configure
`pushgateway`      a running, empty Pushgateway; `own_pushgateway` starts others, with login or TLS
`prometheus`       starts a Prometheus from the text of its configuration
`cli`              the command line program
`batches`          runs in this process; `drill`: runs of the program, with a ledger of what its jobs did

Each test process has servers of its own, so that they may run side by side.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pytest

from tests.batches import Batches
from tests.containers import ContainerServer
from tests.drilling import Drill
from tests.lua.world import World
from tests.monitoring import ContainerPushgateway, Prometheus, Pushgateway
from tests.program import Cli
from tests.proxy import Proxy
from tests.servers import Server, UnavailableError, chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PROVIDER, KINDS = chosen()


def pytest_configure() -> None:
    """Do not ignore SIGINT: who is started in the background of a shell does, and hands that on to what it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class StartServer(Protocol):
    """The type of `own_server`."""

    def __call__(
        self,
        kind: str | None = None,
        *,
        appendonly: bool = False,
        requirepass: str = "",
        extra: Sequence[str] = (),
    ) -> Server:
        """Start a server, of the test's kind unless told; stopped at the end of the test."""


class StartPushgateway(Protocol):
    """The type of `own_pushgateway`."""

    def __call__(self, extra: Sequence[str] = (), *, web_config: str = "") -> Pushgateway:
        """Start a gateway; stopped at the end of the test."""


def unavailable(error: UnavailableError) -> NoReturn:
    """Skip the test; in CI, where everything must be there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(str(error))
    pytest.skip(str(error))


def start_server(kind: str, **options: Any) -> Server:
    server = (ContainerServer if PROVIDER == "containers" else Server)(kind, **options)
    try:
        server.start()
    except UnavailableError as error:
        server.close()
        unavailable(error)
    except BaseException:
        server.close()
        raise
    return server


@pytest.fixture(params=KINDS)
def server_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[dict[str, Server]]:
    servers: dict[str, Server] = {}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture
def server(server_kind: str, shared_servers: dict[str, Server]) -> Server:
    if server_kind not in shared_servers:
        shared_servers[server_kind] = start_server(server_kind)
    server = shared_servers[server_kind]
    server.start()
    server.flush()
    return server


@pytest.fixture
def own_server(server_kind: str) -> Iterator[StartServer]:
    started: list[Server] = []

    def start(kind: str | None = None, **options: Any) -> Server:
        started.append(start_server(kind or server_kind, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


def start_pushgateway(make: Callable[[], Pushgateway]) -> Pushgateway:
    try:
        gateway = make()
    except UnavailableError as error:
        unavailable(error)
    try:
        gateway.start()
    except BaseException:
        gateway.close()
        raise
    return gateway


@pytest.fixture(scope="session")
def shared_pushgateway() -> Iterator[Pushgateway]:
    gateway = start_pushgateway(ContainerPushgateway if PROVIDER == "containers" else Pushgateway)
    yield gateway
    gateway.close()


@pytest.fixture
def pushgateway(shared_pushgateway: Pushgateway) -> Pushgateway:
    shared_pushgateway.wipe()
    return shared_pushgateway


@pytest.fixture
def own_pushgateway() -> Iterator[StartPushgateway]:
    started: list[Pushgateway] = []

    def start(extra: Sequence[str] = (), *, web_config: str = "") -> Pushgateway:
        started.append(start_pushgateway(lambda: Pushgateway(extra, web_config=web_config)))
        return started[-1]

    yield start
    for gateway in started:
        gateway.close()


@pytest.fixture
def prometheus() -> Iterator[Callable[[str], Prometheus]]:
    started: list[Prometheus] = []

    def start(config: str) -> Prometheus:
        try:
            started.append(Prometheus(config))
        except UnavailableError as error:
            unavailable(error)
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    directory: Path = tmp_path_factory.mktemp("cli")
    cli = Cli(directory)
    yield cli
    cli.close()


@pytest.fixture
def batches(server: Server) -> Batches:
    """Runs batches in this process, and looks at what they leave."""
    return Batches(server)


@pytest.fixture
def drill(cli: Cli, server: Server, tmp_path: Path) -> Drill:
    """Runs the program beside a ledger of what jobs have begun and ended."""
    return Drill(cli, server.url, tmp_path)


@pytest.fixture
def proxy(batches: Batches) -> Iterator[Proxy]:
    """A network in front of the server, for a test to break."""
    batches.load_scripts()
    made = Proxy(batches.server.port)
    yield made
    made.close()


@pytest.fixture
def world(server: Server) -> Iterator[World]:
    """Calls scripts, and compares all keys before and after."""
    world = World(server)
    yield world
    world.close()
