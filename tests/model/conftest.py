"""Fixtures: an empty queue on each kind of server, every script to call, and a link that may see everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskbatch.connect import Link
from taskbatch.settings import RedisSettings
from tests.model.numbered import Numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Server


@pytest.fixture
def eyes(server: Server) -> Iterator[Link]:
    link = Link(RedisSettings(server.url))
    yield link
    link.close()


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> Numbered:
    numbered = Numbered()
    monkeypatch.setattr("secrets.token_hex", numbered)
    return numbered
