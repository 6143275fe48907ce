"""The scripts do what the model says, whatever happens in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.examples import explore
from tests.model.stories import StoryMachine

if TYPE_CHECKING:
    from taskbatch.connect import Link
    from tests.lua.world import World
    from tests.model.numbered import Numbered


def test_a_queue_does_what_the_model_says(world: World, eyes: Link, numbered: Numbered) -> None:
    def machine() -> StoryMachine:
        numbered.again()
        return StoryMachine(world, eyes)

    explore(machine, usual=150, steps=40)
