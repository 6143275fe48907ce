"""The scripts do what the model says, whatever happens in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.examples import explore
from tests.model.machine import QueueMachine

if TYPE_CHECKING:
    from taskbatch.connect import Link
    from tests.lua.world import World


def test_a_queue_does_what_the_model_says(world: World, eyes: Link) -> None:
    explore(lambda: QueueMachine(world, eyes), usual=200, steps=40)
