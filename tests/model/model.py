"""What the scripts in `lua/` promise, as plain Python: the same places, the same moves, no Redis.

Lists are as Redis keeps them: the left end first; the right end is next. An entry is text, one character a
byte: the task's bytes, behind its crash digit everywhere but in `pending` and in a run's own list 0.

Time does not pass here. A lease is live until `expire` is called, a scheduled task is not due until
`fall_due` is; the rules do the same to the data in Redis.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LIVE, EXPIRED, REAPING = "live", "expired", "reaping"
CRASHES = 4
"""So many runs may die holding a task; then it is dead."""

LONG = 10 * 3_600_000
"""By how many ms a thing is moved into the past when its time has come."""


class Letter(NamedTuple):
    """A dead letter."""

    task: str
    reason: str
    run: str


class Ending(NamedTuple):
    """A line of the history; `count` idle runs in a row are one."""

    run: str
    result: str
    count: int
    idle: bool


class Fate(NamedTuple):
    """What a settle is to do with one task: `place` is done, scheduled, back or dead; `stored` '' = unchanged."""

    n: int
    entry: str
    place: str
    stored: str
    delay_ms: int
    reason: str
    counts: Counter[str]
    window: str
    frees: tuple[str, str] | None


class Answer(NamedTuple):
    """What a claim says; `window` -1 = no limit, `at_ms` 0 = never."""

    status: str
    window: int = -1
    at_ms: int = 0
    recovered: int = 0
    tasks: tuple[str, ...] = ()


@dataclass
class Model:
    """One queue. `start` is when the model began, ms of Redis: what is due has an earlier score."""

    start: int
    pending: list[str] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    scheduled: dict[str, int] = field(default_factory=dict)
    dead: list[Letter] = field(default_factory=list)
    own: dict[str, tuple[list[str], list[str], list[str]]] = field(default_factory=dict)
    leases: dict[str, str] = field(default_factory=dict)
    informed: set[str] = field(default_factory=set)
    unique: dict[str, str] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    history: list[Ending] = field(default_factory=list)
    paused: str = ""
    limit: tuple[int, int] | None = None
    taken: tuple[int, int] | None = None
    """The window of the queue-wide limit that permits were last taken from, and how many."""

    schema: bool = False

    # -- producers

    def enqueue(self, task: str, name: str, due: int | None, unique: str) -> list[Any]:
        """Accept a task, once while its deduplication key is held; a twin of one that is scheduled is no new one."""
        if unique in self.unique:
            return [0, self.unique[unique]]
        if due is not None and "0" + task in self.scheduled:
            return [0, name]
        if unique:
            self.unique[unique] = name
        if due is None:
            self.pending.insert(0, task)
        else:
            self.scheduled["0" + task] = due
        return [1, name]

    # -- a run

    def lists(self, run: str) -> tuple[list[str], list[str], list[str]]:
        """Return the run's own lists."""
        return self.own.setdefault(run, ([], [], []))

    def lengths(self, run: str) -> list[int]:
        """Return how long the run's own lists are."""
        return [len(entries) for entries in self.lists(run)]

    def open(self, run: str, cap: int) -> list[Any]:
        """Register a lease; one that is being reaped stays lost."""
        alive = list(self.leases.values()).count(LIVE)
        if cap and run not in self.leases and alive >= cap:
            return ["overlap", alive]
        if self.leases.get(run) != REAPING:
            self.leases[run] = LIVE
            self.informed.add(run)
        self.schema = True
        return ["ok"]

    def renew(self, run: str) -> int:
        """Extend a lease, expired or not, that nobody has begun to reap."""
        if self.leases.get(run) not in {LIVE, EXPIRED}:
            return 0
        self.leases[run] = LIVE
        return 1

    def claim(self, run: str, want: int, max_bytes: int, promoted: int) -> Answer:
        """Move what is due, then recovered, then pending, to a run that holds no suspect.

        `promoted` is how many were seen to leave `scheduled`.
        """
        refusal = self._refusal(run, busy=bool(self.lists(run)[2]))
        if refusal is not None:
            return refusal
        permits, window = self._permits()
        want = want if permits is None else min(want, permits)
        room = max(0, min(want - len(self.recovered), len(self._due())))
        assert promoted == room or (0 < promoted < room and max_bytes < LONG), (promoted, room)
        self._move_due(self._due()[:promoted])
        moved: list[str] = []
        recovered = self._take(self.recovered, self.lists(run)[1], want, max_bytes, moved)
        self._take(self.pending, self.lists(run)[0], want, max_bytes, moved)
        self._claimed(window, len(moved))
        at = min(self.scheduled.values(), default=0) if want > 0 and not moved else 0
        return Answer("ok", window, at, recovered, tuple(moved))

    def claim_suspect(self, run: str) -> Answer:
        """Move one suspect to a run that holds nothing."""
        refusal = self._refusal(run, busy=any(self.lists(run)))
        if refusal is not None:
            return refusal
        _, window = self._permits()
        moved: list[str] = []
        self._take(self.suspects, self.lists(run)[2], 1, 1, moved)
        self._claimed(window, len(moved))
        return Answer("ok", window, 0, 0, tuple(moved))

    def settle(self, run: str, fates: list[Fate], now: int) -> str:
        """Take each task from the run's own list and put it where it belongs; '1' or '0' (not there) for each."""
        flags = ""
        refunds: Counter[str] = Counter()
        for fate in fates:
            entries = self.lists(run)[fate.n]
            if fate.entry not in entries:
                flags += "0"
                continue
            flags += "1"
            # Of twins the one claimed first goes.
            del entries[len(entries) - 1 - entries[::-1].index(fate.entry)]
            self._place(run, fate, now)
            self.totals += fate.counts
            if fate.window:
                refunds[fate.window] += 1
        if self.taken is not None:
            window, taken = self.taken
            self.taken = (window, taken - min(taken, refunds[str(window)]))
        return flags

    def close(self, run: str, result: str, *, idle: bool) -> list[Any]:
        """End a run that holds nothing."""
        if any(self.lists(run)):
            return ["held", *self.lengths(run)]
        if self.leases.pop(run, None) is None:
            return ["gone", 0, 0, 0]
        self.informed.discard(run)
        count = 1
        if idle and self.history and self.history[-1].idle:
            count += self.history.pop().count
        self.history.append(Ending(run, result, count, idle))
        self.totals[f"runs:{result}"] += 1
        return ["closed", 0, 0, 0]

    # -- anybody

    def reap(self, run: str, count: int, max_bytes: int) -> list[Any]:
        """Move one chunk of what an expired run left behind one step on, suspects first, oldest first."""
        lease = self.leases.get(run)
        if lease is None and not any(self.lists(run)):
            self.informed.discard(run)
            return ["done", 0, 0, 0]
        if lease is None:
            self.leases[run] = LIVE
            return ["noted", 0, 0, 0]
        if lease == LIVE:
            return ["live", 0, 0, 0]
        self.leases[run] = REAPING
        moved: Counter[str] = Counter()
        for n in (2, 1, 0):
            entries = self.lists(run)[n]
            while entries and moved.total() < count and max_bytes > 0:
                entry = entries.pop()
                max_bytes -= len(entry)
                moved[self._step_on(run, n, entry)] += 1
        self.totals += Counter({f"reaped:{place}": times for place, times in moved.items()})
        answer = [moved["recovered"], moved["suspects"], moved["dead"]]
        if any(self.lists(run)):
            return ["more", *answer]
        del self.leases[run]
        self.informed.discard(run)
        self.history.append(Ending(run, "crashed", 1, idle=False))
        self.totals["runs:crashed"] += 1
        return ["done", *answer]

    def promote(self, count: int, moved: int) -> None:
        """Move a chunk of what is due, the newest first; `moved` were seen to go."""
        due = self._due()
        assert min(1, len(due)) <= moved <= min(count, len(due)), (moved, count, len(due))
        self._move_due(due[len(due) - moved :])

    # -- a person

    def redrive(self, index: int, stored: str) -> None:
        """Put a dead letter back, behind what waits."""
        del self.dead[index]
        self.pending.insert(0, stored)
        self.totals["redriven"] += 1

    def discard(self, index: int) -> None:
        """Delete a dead letter."""
        del self.dead[index]
        self.totals["deleted"] += 1

    def purge(self, place: str) -> int:
        """Delete all that waits in one place."""
        here = getattr(self, place)
        count = len(here)
        here.clear()
        self.totals["deleted"] += count
        return count

    def pause(self, reason: str) -> int:
        """Pause the queue, or ('') let it go on; 0: there was nothing to let go on."""
        before, self.paused = self.paused, reason
        return 1 if reason or before else 0

    def limit_queue(self, limit: tuple[int, int] | None) -> None:
        """Set the queue-wide limit (count, period); if only the count changes, what was claimed counts on."""
        if limit is None or self.limit is None or limit[1] != self.limit[1]:
            self.taken = None
        self.limit = limit

    # -- time, and accidents

    def expire(self, run: str) -> None:
        """Let a lease run out."""
        if self.leases.get(run) == LIVE:
            self.leases[run] = EXPIRED

    def fall_due(self, entry: str) -> None:
        """Let a scheduled task fall due."""
        self.scheduled[entry] -= LONG

    def next_window(self) -> None:
        """Let the window of the queue-wide limit end."""
        if self.taken is not None:
            self.taken = (self.taken[0] - 1, self.taken[1])

    def lose_lease_entry(self, run: str) -> None:
        """Let somebody delete the run's lease by hand."""
        self.leases.pop(run, None)

    # -- how

    def view(self) -> dict[str, Any]:
        """Return every key that is not empty, as `look.look` reads them."""
        keys: dict[str, Any] = {
            "pending": self.pending,
            "recovered": self.recovered,
            "suspects": self.suspects,
            "scheduled": self.scheduled,
            "dead": self.dead,
            "runs": self.leases,
            "runs:info": self.informed,
            "totals": +self.totals,
            "history": self.history,
            "paused": self.paused,
            "config": {"schema": "1"} if self.schema else {},
            "limit": self.taken,
        }
        if self.limit is not None:
            keys["config"] = keys["config"] | {"limit": f"{self.limit[0]} {self.limit[1]}"}
        keys |= {f"unique:{key}": name for key, name in self.unique.items()}
        keys |= {f"processing:{run}:{n}": entries for run, lists in self.own.items() for n, entries in enumerate(lists)}
        return {key: value for key, value in keys.items() if value}

    def _refusal(self, run: str, *, busy: bool) -> Answer | None:
        if self.leases.get(run) != LIVE:
            return Answer("lost")
        if self.paused:
            return Answer("paused")
        if busy:
            return Answer("busy")
        permits, window = self._permits()
        if permits == 0 and self.limit is not None:
            return Answer("limited", window, (window + 1) * self.limit[1])
        return None

    def _permits(self) -> tuple[int | None, int]:
        if self.limit is None:
            return None, -1
        # Periods are so long that the first window is the one of today.
        window, taken = 0, self.taken[1] if self.taken is not None and self.taken[0] == 0 else 0
        return max(0, self.limit[0] - taken), window

    def _claimed(self, window: int, count: int) -> None:
        self.totals["claimed"] += count
        if self.limit is not None and count:
            taken = self.taken[1] if self.taken is not None and self.taken[0] == window else 0
            self.taken = (window, taken + count)

    @staticmethod
    def _take(source: list[str], target: list[str], want: int, max_bytes: int, moved: list[str]) -> int:
        before = len(moved)
        while source and len(moved) < want and sum(map(len, moved)) < max_bytes:
            moved.append(source.pop())
            target.insert(0, moved[-1])
        return len(moved) - before

    def _due(self) -> list[str]:
        return sorted(
            (entry for entry, due in self.scheduled.items() if due < self.start),
            key=lambda entry: (self.scheduled[entry], entry),
        )

    def _move_due(self, entries: list[str]) -> None:
        # What waited longest is pushed last: it is next.
        for entry in reversed(entries):
            del self.scheduled[entry]
            digit, task = entry[0], entry[1:]
            if digit == "0":
                self.pending.append(task)
            else:
                (self.recovered if digit == "1" else self.suspects).append(entry)

    def _place(self, run: str, fate: Fate, now: int) -> None:
        match fate.place:
            case "done":
                if fate.frees is not None and self.unique.get(fate.frees[0]) == fate.frees[1]:
                    del self.unique[fate.frees[0]]
            case "scheduled":
                self.scheduled[fate.stored] = now + fate.delay_ms
            case "back":
                (self.pending, self.recovered, self.suspects)[fate.n].append(fate.stored or fate.entry)
            case "dead":
                task = fate.entry if fate.n == 0 else fate.entry[1:]
                self.dead.append(Letter(fate.stored or task, fate.reason, run))

    def _step_on(self, run: str, n: int, entry: str) -> str:
        if n == 0:
            self.recovered.insert(0, "1" + entry)
            return "recovered"
        crashes, task = int(entry[0]) + 1, entry[1:]
        if crashes < CRASHES:
            self.suspects.insert(0, f"{crashes}{task}")
            return "suspects"
        self.dead.append(Letter(task, "crashed", run))
        return "dead"
