"""The fixture `world`: an empty queue on each kind of server, and every script to call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lua.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Server


@pytest.fixture
def world(server: Server) -> Iterator[World]:
    world = World(server)
    yield world
    world.close()
