"""How much to claim: for free threads, and a little ahead by what was measured. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from taskbatch.settings import CLAIM_AHEAD_MAX, CLAIM_AHEAD_SECONDS

_SHORTEST = 1e-6


@dataclass(slots=True)
class Pace:
    """`threads` workers, at most `max_tasks` started in all (None = no bound)."""

    threads: int
    max_tasks: int | None
    admitted: int = 0
    mean: float | None = None

    @property
    def exhausted(self) -> bool:
        """Whether as many tasks were started as the run may start."""
        return self.max_tasks is not None and self.admitted >= self.max_tasks

    def want(self, in_pool: int) -> int:
        """Return how many tasks to claim while `in_pool` are with the workers.

        Ahead is only what the threads will begin within 50 ms, so that a crash strands little and runs
        that overlap share fairly; nothing before a duration was measured.
        """
        ahead = 0
        if self.mean is not None:
            ahead = min(CLAIM_AHEAD_MAX, int(self.threads * CLAIM_AHEAD_SECONDS / max(self.mean, _SHORTEST)))
        room = max(0, self.threads + ahead - in_pool)
        return room if self.max_tasks is None else max(0, min(room, self.max_tasks - self.admitted))

    def measured(self, seconds: float, tasks: int) -> None:
        """Take in that `tasks` jobs took `seconds` together."""
        mean = seconds / tasks
        weight = min(1.0, tasks / (4 * self.threads))
        self.mean = mean if self.mean is None else self.mean + (mean - self.mean) * max(weight, 0.1)

    def guessed_wrong(self) -> None:
        """Claim nothing ahead until shorter durations are measured: what was claimed ahead had to be given back."""
        self.mean = max(self.mean or 0.0, 1.0)
