"""Measuring programs: what one took, several in turn, and what is said of the numbers."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SPAWN = Path(__file__).with_name("spawn.py")


@dataclass(frozen=True)
class Usage:
    """What a whole process took: wall and CPU seconds (its children included), peak memory in MiB, what it printed."""

    seconds: float
    cpu: float
    peak: float
    output: str = ""


@dataclass
class Samples:
    """Values of one thing, one a round."""

    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The middle one. ValueError if there is none."""
        return statistics.median(self.values)

    @property
    def lowest(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def highest(self) -> float:
        """The largest."""
        return max(self.values)

    def times(self, factor: float) -> Samples:
        """Return them in another unit."""
        return Samples([value * factor for value in self.values])

    def per(self, amount: float) -> Samples:
        """Return how much of `amount` a unit of each is: 20,000 tasks in these seconds, as tasks a second."""
        return Samples([amount / value for value in self.values])

    def ratio(self, other: Samples) -> float:
        """Return how many times the other's median this one's is."""
        return self.median / other.median


class FailedError(Exception):
    """A measured program failed; the message holds what it said."""


def run(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Usage:
    """Run a program to its end. Raises FailedError unless it exits with 0."""
    with tempfile.NamedTemporaryFile() as output:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(SPAWN), output.name, *command],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        printed = Path(output.name).read_text(errors="replace")
    if done.returncode:
        raise FailedError(f"{command[0]} could not be started: {done.stderr[-2000:]}")
    usage = parse_usage(done.stdout, printed)
    if usage is None:
        raise FailedError(f"{' '.join(command)} failed: {done.stderr[-2000:] or printed[-2000:]}")
    return usage


def parse_usage(line: str, printed: str = "") -> Usage | None:
    """Return what `spawn.py` says; None if the program did not exit with 0."""
    seconds, cpu, peak_kib, code = line.split()
    return Usage(float(seconds), float(cpu), int(peak_kib) / 1024, printed) if int(code) == 0 else None


def in_turn(
    candidates: Mapping[str, Callable[[], dict[str, float]]], rounds: int, *, warm_up: bool = True
) -> dict[str, dict[str, Samples]]:
    """Call each candidate once a round and gather what they return: by candidate, then by what was measured.

    A first round that does not count fills caches, and writes what Python compiles.
    """
    gathered: dict[str, dict[str, Samples]] = {name: {} for name in candidates}
    for number in range(rounds + warm_up):
        for name, call in candidates.items():
            for what, value in call().items():
                if number >= warm_up:
                    gathered[name].setdefault(what, Samples()).values.append(value)
    return gathered


def clean_environment() -> dict[str, str]:
    """Return this process's variables without those that would steer what is measured."""
    steering = ("TASKBATCH_", "REDIS_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(steering)}
