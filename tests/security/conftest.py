"""Fixtures of the tests of threats. What a server is makes no difference to them, so one kind will do."""

from __future__ import annotations

import pytest


@pytest.fixture
def server_kind() -> str:
    return "redis"
