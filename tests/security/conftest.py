"""Fixtures of the tests of threats. What a server is makes no difference to them, so one kind will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.batches import Batches
from tests.drilling import Drill

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program import Cli
    from tests.servers import Server


@pytest.fixture
def server_kind() -> str:
    return "redis"


@pytest.fixture
def batches(server: Server) -> Batches:
    return Batches(server)


@pytest.fixture
def drill(cli: Cli, server: Server, tmp_path: Path) -> Drill:
    return Drill(cli, server.url, tmp_path)
