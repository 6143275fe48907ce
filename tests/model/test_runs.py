"""What runs believe after lost replies is what is true."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from taskbatch.settings import RedisSettings
from tests.model.examples import explore
from tests.model.run_machine import RunMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskbatch.connect import Link
    from tests.model.numbered import Numbered
    from tests.servers import Server


@pytest.fixture
def quick_and_quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Thousands of lost replies: no warning for each, and no pause before Redis is tried again."""
    monkeypatch.setattr("taskbatch.recount.SHORTEST_DELAY", 0.0)
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("quick_and_quiet")
def test_runs_that_lose_replies_believe_what_is_true(server: Server, eyes: Link, numbered: Numbered) -> None:
    def machine() -> RunMachine:
        numbered.again()
        return RunMachine(RedisSettings(server.url), eyes)

    explore(machine, usual=120, steps=30)
