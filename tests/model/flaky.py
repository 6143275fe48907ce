"""A connection that fails when it is told to, in every way in which one can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from taskbatch.connect import Link
from taskbatch.errors import DoubtError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.connect import Command
    from taskbatch.settings import RedisSettings

FAULTS = ("lost", "reply lost", "cut", "late", "refused")
"""The commands never arrive; their replies do not; only half of the commands arrive; they arrive when nobody waits
for them any more; the server refuses the last one."""


class FlakyLink(Link):
    """`faults` are those of the next exchanges, one each; `ghosts` is what will arrive late."""

    def __init__(self, settings: RedisSettings) -> None:
        super().__init__(settings)
        self.faults: list[str] = []
        self.ghosts: list[list[Command]] = []

    def exchange(self, commands: Sequence[Command], *, timeout: float | None = None) -> list[Any]:
        fault = self.faults.pop(0) if self.faults else ""
        match fault:
            case "":
                return super().exchange(commands, timeout=timeout)
            case "reply lost":
                super().exchange(commands)
            case "cut" if len(commands) > 1:
                super().exchange(commands[: len(commands) // 2])
            case "late":
                self.ghosts.append(list(commands))
            case "refused":
                before = super().exchange(commands[:-1]) if len(commands) > 1 else []
                return [*before, ResponseError("BUSY somebody's script runs")]
        raise DoubtError(f"a test lost this: {fault}")
