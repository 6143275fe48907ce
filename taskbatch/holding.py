"""What a run believes it holds of one queue, and how that is put right after a reply was lost. No I/O."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from taskbatch.settings import CHUNK_BYTES, CHUNK_TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.outcome import Outcome
    from taskbatch.queue import Claim, RunQueue
    from taskbatch.settlement import Claimed


SHORTEST_REST = 0.1
LONGEST_REST = 1.0
"""How long a queue that gave nothing is not asked again, in seconds, unless something is settled."""


class Decision(NamedTuple):
    """An outcome that is to be written; `duration` in seconds, None = the job did not run."""

    held: Claimed
    outcome: Outcome
    duration: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the own lists has shown.

    `adopted`: tasks a lost reply of a claim had brought. `again`: decided and still there, without an id,
    so it cannot be told from another one with the same bytes. `applied`: settled by a call whose reply was lost.
    `lost`: decided, but taken away before that was written. `gone`: taken away while it was being worked on.
    """

    adopted: list[tuple[int, bytes]] = field(default_factory=list)
    again: list[Claimed] = field(default_factory=list)
    applied: list[Decision] = field(default_factory=list)
    lost: list[Decision] = field(default_factory=list)
    gone: list[Claimed] = field(default_factory=list)


@dataclass(slots=True)
class Holding:
    """The tasks of one queue between claim and settle."""

    queue: RunQueue
    held: dict[int, Claimed] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=lambda: [0, 0, 0])
    decided: list[Decision] = field(default_factory=list)
    paused: bool = False
    limited: bool = False
    dry: bool = False
    dry_until: float = 0.0
    due_in: float | None = None

    @property
    def resting(self) -> bool:
        """Whether the queue gives nothing for now, however much waits in it."""
        return self.paused or self.limited

    def answered(self, claim: Claim, now: float, *, suspect: bool) -> None:
        """Remember what the last claim said; `now` is of `time.monotonic()`."""
        self.paused = claim.status == "paused"
        self.limited = claim.status == "limited"
        # A due time is of Redis; only the span from then on means anything here.
        self.due_in = (claim.at_ms - claim.now_ms) / 1000 if claim.at_ms else None
        self.dry = not claim.entries and not suspect
        if self.dry:
            rest = min(LONGEST_REST, max(self.due_in or 0.0, SHORTEST_REST)) if self.resting else SHORTEST_REST
            self.dry_until = now + (LONGEST_REST if self.paused else rest)

    def stir(self) -> None:
        """Forget that it gave nothing: there may be something new."""
        self.dry, self.dry_until = False, 0.0

    def add(self, one: Claimed) -> None:
        """Take on a task that was claimed."""
        self.held[id(one)] = one
        self.lengths[one.n] += 1

    def holds(self, one: Claimed) -> bool:
        """Whether a task is still ours, as far as we know."""
        return id(one) in self.held

    def batch(self) -> list[Decision]:
        """Return the decisions the next settle is to write, bounded in number and bytes."""
        size = 0
        for count, decision in enumerate(self.decided):
            size += len(decision.held.entry)
            if count >= CHUNK_TASKS or (count and size > CHUNK_BYTES * 4):
                return self.decided[:count]
        return self.decided[:]

    def settled(self, batch: Sequence[Decision]) -> None:
        """Let go of a batch whose settle has answered, whatever it answered for each."""
        for decision in batch:
            self.forget(decision.held)
        del self.decided[: len(batch)]

    def forget(self, one: Claimed) -> None:
        """Let go of a task."""
        if self.held.pop(id(one), None) is not None:
            self.lengths[one.n] -= 1

    def reconcile(self, lists: Sequence[Sequence[bytes]], *, lease_kept: bool) -> Found:
        """Compare with what is really in the own lists, believe those, and say what differed."""
        there = [Counter(entries) for entries in lists]
        waiting = {id(decision.held): decision for decision in self.decided}
        found = Found()
        # Of tasks with the same bytes, those still worked on are the ones that are there: the others were settled.
        for one in sorted(self.held.values(), key=lambda one: id(one) in waiting):
            decision = waiting.get(id(one))
            if there[one.n][one.entry] > 0:
                there[one.n][one.entry] -= 1
                if decision is not None and one.task is not None and not one.task.id:
                    self.decided.remove(decision)
                    found.again.append(one)
                continue
            self.forget(one)
            if decision is None:
                found.gone.append(one)
            else:
                self.decided.remove(decision)
                (found.applied if lease_kept else found.lost).append(decision)
        for n, entries in enumerate(lists):
            # Newest left in the list; they are to be run in the order they were claimed.
            for entry in reversed(entries):
                if there[n][entry] > 0:
                    there[n][entry] -= 1
                    found.adopted.append((n, entry))
        return found
