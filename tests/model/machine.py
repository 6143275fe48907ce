"""What can happen to a queue, in any order: each rule does it to the server and to the model, and compares.

A process may know less than Redis does: replies get lost, and who was reaped does not notice. `hand` is what
it believes to hold. A crashed process lets go of its hand, but what it sent may still arrive.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from taskbatch.admission import admit, parsed
from taskbatch.declaration import Job
from taskbatch.holding import Decision
from taskbatch.invocation import BadPayload, Failed, Succeeded
from taskbatch.keys import Keys
from taskbatch.outcome import Ack, Outcome, Release
from taskbatch.policy import decide, decide_interrupted
from taskbatch.queue import RunQueue, read_settled
from taskbatch.settlement import Claimed, reset, settlement
from taskbatch.task import parse
from tests.lua.keyspace import full, raw, text
from tests.lua.world import LOTS, own
from tests.model import tasks
from tests.model.fates import DURATION, fate
from tests.model.invariants import Step, check
from tests.model.look import View, look
from tests.model.model import LIVE, LONG, Answer, Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.connect import Link
    from tests.lua.world import World

KEYS = Keys("taskbatch", "q")
HOUR_MS = 3_600_000
PERIODS = (10**13, 2 * 10**13)
"""Of the queue-wide limit, in ms: centuries, so that no window ends by itself."""

KINDS = (tasks.KNOWN, tasks.KNOWN, tasks.KNOWN, "unheard-of")
WHICH = st.integers(0, 5)
ENDS = ("ok", "ok", "fails", "fails", "bad payload", "interrupted", "limit", "limit at once", "shutdown", "no_time")
BYTES = st.sampled_from([LOTS, LOTS, LOTS, 1, 120])
"""How many bytes a chunk may have; mostly enough for all there is."""


@dataclass
class Process:
    """A run as it sees itself; `sent` is what it settled last, in case it has to do that again."""

    run: str
    hand: list[Claimed] = field(default_factory=list)
    sent: list[Decision] = field(default_factory=list)


class QueueMachine(RuleBasedStateMachine):
    """One queue, some producers, some runs, a reaper and a person."""

    def __init__(self, world: World, eyes: Link) -> None:
        super().__init__()
        self.world = world
        self.eyes = eyes
        world.admin.flushall()
        world.admin.acl_log_reset()
        self.model = Model(start=world.now)
        self.ledger = tasks.Ledger()
        self.processes: list[Process] = []
        self.step = Step()
        self.seen: View = {}
        self.numbers = 0
        self.ordered: set[str] = set()
        self.orders = 0

    @initialize(count=st.integers(0, 6), kind=st.sampled_from(KINDS))
    def begin(self, count: int, kind: str) -> None:
        self._open("r0", 0)
        self._open("r1", 0)
        for _ in range(count):
            self.enqueue(kind, False, "", False, True)

    @invariant()
    def everything_holds(self) -> None:
        now = look(self.eyes)
        expected = self.model.view()
        for name in sorted(now.keys() | expected.keys()):
            assert now.get(name) == expected.get(name), name
        check(self.seen, self.step, now, self.ledger)
        self.seen = now
        self._put_in_order()

    def _put_in_order(self) -> None:
        """Give what was just scheduled a due time of ours: by the clock, no example is like itself."""
        self.ordered &= self.model.scheduled.keys()
        for entry in [entry for entry in self.model.scheduled if entry not in self.ordered]:
            self.ordered.add(entry)
            self.orders += 1
            # Two fall due at the same instant, now and then.
            due = self.model.start + HOUR_MS + self.orders // 2
            self.world.admin.zadd(full("scheduled"), {raw(entry): due})
            self.model.scheduled[entry] = due

    # -- producers

    @rule(
        kind=st.sampled_from(KINDS),
        delayed=st.sampled_from([False, False, True]),
        unique=st.sampled_from(["", "", "u", "v"]),
        worn=st.sampled_from([False, False, True]),
        known=st.booleans(),
    )
    def enqueue(self, kind: str, delayed: bool, unique: str, worn: bool, known: bool) -> None:
        self.numbers += 1
        name = f"id{self.numbers}"
        task = tasks.make(self.numbers, id=name, kind=kind, unique=unique, worn=worn, known=known)
        self._enqueue(str(text(task)), name, HOUR_MS if delayed else 0, unique)

    @rule(number=st.integers(-2, -1), twins=st.integers(1, 3), delayed=st.sampled_from([False, False, True]))
    def enqueue_twins_without_an_id(self, number: int, twins: int, delayed: bool) -> None:
        for _ in range(twins):
            self._enqueue(str(text(tasks.make(number, id=""))), "", HOUR_MS if delayed else 0, "")

    @rule(known=st.booleans())
    def push_the_same_task_twice(self, known: bool) -> None:
        """A producer that repeats blindly."""
        self.numbers += 1
        task = str(text(tasks.make(self.numbers, id=f"id{self.numbers}", known=known)))
        for _ in range(2):
            self._enqueue(task, f"id{self.numbers}", 0, "")

    @rule(damage=st.sampled_from(tasks.DAMAGE))
    def push_damage(self, damage: bytes) -> None:
        self._did("enqueue")
        self.world.admin.lpush(full("pending"), damage)
        self.model.pending.insert(0, str(text(damage)))
        self.ledger.accepted[tasks.token(str(text(damage)))] += 1

    @rule(key=st.sampled_from(["u", "v"]))
    def deduplication_ends(self, key: str) -> None:
        self._did("time")
        self.world.admin.delete(full(f"unique:{key}"))
        self.model.unique.pop(key, None)

    def _enqueue(self, task: str, name: str, delay: int, unique: str) -> None:
        self._did("enqueue")
        asked = self.world.now
        reply = self.world.enqueue(task, name, delay=delay, unique=unique, ttl=HOUR_MS)
        due = None
        if delay and reply[0] == 1:
            due = int(self.world.admin.zscore(full("scheduled"), raw("0" + task)))
            assert asked + delay <= due <= self.world.now + delay
        assert reply == self.model.enqueue(task, name, due or (delay or None), unique)
        self.ledger.accepted[tasks.token(task)] += reply[0]

    # -- a run begins and ends

    @rule(cap=st.sampled_from([0, 0, 0, 2]))
    def open_a_run(self, cap: int) -> None:
        self._open(f"r{len(self.processes)}", cap)

    @rule(which=WHICH)
    def open_is_repeated(self, which: int) -> None:
        self._open(self._process(which).run, 0)

    @rule(which=WHICH, result=st.sampled_from(["success", "interrupted", "error"]), idle=st.booleans())
    def close(self, which: int, result: str, idle: bool) -> None:
        run = self._did("close_run", self._process(which).run)
        assert self.world.close_run(run, result=result, idle=idle) == self.model.close(run, result, idle=idle)

    @rule(which=WHICH)
    def renew(self, which: int) -> None:
        self._renew(self._process(which).run)

    @rule(which=WHICH)
    def crash(self, which: int) -> None:
        self._did("crash")
        self._process(which).hand.clear()

    def _renew(self, run: str) -> None:
        self._did("renew", run)
        assert self.world.renew(run, HOUR_MS) == self.model.renew(run)

    def _open(self, run: str, cap: int) -> None:
        self._did("open_run", run)
        reply = self.world.open_run(run, lease=HOUR_MS, cap=cap)
        assert (reply[:1] if reply[0] == "ok" else reply) == self.model.open(run, cap)
        if reply[0] == "ok" and run not in [process.run for process in self.processes]:
            self.processes.append(Process(run))

    # -- a run claims

    @rule(which=WHICH, want=st.integers(0, 5), max_bytes=BYTES, lost=st.sampled_from([False, False, True]))
    def claim(self, which: int, want: int, max_bytes: int, lost: bool) -> None:
        self._claim(self._process(which, self._alive), want, max_bytes, lost=lost)

    @rule(which=WHICH, lost=st.sampled_from([False, False, True]))
    def claim_suspect(self, which: int, lost: bool) -> None:
        self._claim_suspect(self._process(which, self._alive), lost=lost)

    @rule(which=WHICH, want=st.integers(0, 3))
    def claim_as_a_ghost(self, which: int, want: int) -> None:
        """What a run sent before it was reaped, closed or stopped may arrive at any time."""
        self._claim(self._process(which, self._lost), want, LOTS)
        self._claim_suspect(self._process(which, self._lost))

    @rule(which=WHICH, want=st.integers(1, 5), ends=st.permutations(ENDS))
    def work(self, which: int, want: int, ends: list[str]) -> None:
        process = self._process(which, self._alive)
        self._claim(process, want, LOTS)
        if process.hand:
            self.everything_holds()
            self._settle(process, [self._decided(*one) for one in zip(process.hand, ends, strict=False)])
            del process.hand[: len(ends)]

    @rule(which=WHICH)
    def recount(self, which: int) -> None:
        """Believe the own lists, as a run does that is in doubt."""
        process = self._process(which)
        self._did("look")
        lists = [self.world.admin.lrange(full(name), 0, -1) for name in own(process.run)]
        process.hand = [
            parsed(n, entry, self.world.now, "") for n, entries in enumerate(lists) for entry in reversed(entries)
        ]

    def _claim(self, process: Process, want: int, max_bytes: int, *, lost: bool = False) -> None:
        run = self._did("claim", process.run)
        before = len(self.model.scheduled)
        reply = self.world.claim(run, want, max_bytes=max_bytes)
        promoted = before - self.world.admin.zcard(full("scheduled"))
        self._claimed(process, reply, self.model.claim(run, want, max_bytes, promoted), suspect=False, lost=lost)

    def _claim_suspect(self, process: Process, *, lost: bool = False) -> None:
        run = self._did("claim_suspect", process.run)
        reply = self.world.claim_suspect(run)
        self._claimed(process, reply, self.model.claim_suspect(run), suspect=True, lost=lost)

    def _claimed(self, process: Process, reply: Any, expected: Answer, *, suspect: bool, lost: bool) -> None:
        status, now, *lengths, window, at, recovered = reply[:8]
        assert Answer(status, window, at, recovered, tuple(reply[8:])) == expected
        assert lengths == self.model.lengths(process.run)
        if lost:
            return
        for i, entry in enumerate(reply[8:]):
            n = 2 if suspect else int(i < recovered)
            process.hand.append(parsed(n, raw(entry), now, str(window) if window >= 0 else ""))

    # -- a run settles

    @rule(
        which=WHICH,
        choices=st.lists(st.tuples(WHICH, st.sampled_from(ENDS)), min_size=1, max_size=4),
        lost=st.sampled_from([False, False, False, True]),
    )
    def settle(self, which: int, choices: list[tuple[int, str]], lost: bool) -> None:
        """A process that was stopped and reaped settles what it still believes to hold, as any other does."""
        process = self._process(which, _holds)
        ended: dict[int, tuple[Claimed, str]] = {}
        for index, end in choices:
            if process.hand:
                held = process.hand[index % len(process.hand)]
                ended.setdefault(id(held), (held, end))
        if not ended:
            return
        self._settle(process, [self._decided(held, end) for held, end in ended.values()])
        if not lost:
            process.hand = [one for one in process.hand if id(one) not in ended]

    @rule(which=WHICH)
    def settle_is_repeated(self, which: int) -> None:
        """A task without an id is not among those: it could not be told from its twin, so a run runs it again."""
        process = self._process(which, lambda one: bool(one.sent))
        if process.sent:
            self._settle(process, process.sent)

    def _decided(self, held: Claimed, end: str) -> Decision:
        verdict = admit(held, tasks.JOBS, self.model.start, None)
        ran = False
        if isinstance(verdict, Job):
            ran = end in {"ok", "fails", "bad payload"}
            verdict = self._ended(held, end)
            if end == "interrupted":
                held.window = ""
        if isinstance(verdict, Release) and verdict.after > 0:
            # Nothing is to fall due by itself.
            verdict = replace(verdict, after=max(verdict.after, tasks.HOUR))
        return Decision(held, verdict, DURATION if ran else None)

    @staticmethod
    def _ended(held: Claimed, end: str) -> Outcome:
        assert held.task is not None
        match end:
            case "ok" | "fails" | "bad payload":
                results = {"ok": Succeeded(), "fails": Failed("no"), "bad payload": BadPayload("none")}
                return decide(held.task, tasks.JOB, results[end], tasks.Longest())
            case "interrupted":
                return decide_interrupted(held.task)
            case "limit":
                return Release(tasks.HOUR, "limit")
            case "limit at once":
                return Release(0.0, "limit")
            case "no_time":
                return Release(tasks.HOUR, "no_time")
        return Release(0.0, "shutdown")

    def _settle(self, process: Process, batch: list[Decision]) -> None:
        run = self._did("settle", process.run)
        written = [settlement(*decision) for decision in batch]
        fates = [fate(decision, one) for decision, one in zip(batch, written, strict=True)]
        (reply,) = self.world.exchange(RunQueue(KEYS, run).settle(written))
        settled = read_settled(reply)
        flags = "".join("01"[done] for done in settled.done)
        assert flags == self.model.settle(run, fates, settled.now_ms)
        assert list(settled.lengths) == self.model.lengths(run)
        for one, done in zip(batch, settled.done, strict=True):
            if done and isinstance(one.outcome, Ack):
                self.ledger.done[tasks.token(str(text(one.held.raw)))] += 1
        process.sent = [one for one in batch if one.held.task is None or one.held.task.id]

    # -- the reaper

    @rule(which=WHICH)
    def lease_expires(self, which: int) -> None:
        self._expire(self._process(which, self._alive).run)

    @rule(which=WHICH, count=st.integers(1, 3), max_bytes=BYTES)
    def reap_a_chunk(self, which: int, count: int, max_bytes: int) -> None:
        self._reap(self._process(which, self._lost).run, count, max_bytes)

    @rule(which=WHICH, count=st.integers(1, 3), max_bytes=BYTES)
    def stop_until_reaped(self, which: int, count: int, max_bytes: int) -> None:
        """The process goes on afterwards, and knows nothing of it."""
        self._lose(self._process(which, _holds).run, count, max_bytes)

    @rule(which=WHICH)
    def lease_entry_is_deleted(self, which: int) -> None:
        run = self._process(which).run
        self._did("time", run)
        self.world.admin.zrem(full("runs"), run)
        self.model.lose_lease_entry(run)
        self.seen.get("runs", {}).pop(run, None)

    @rule(count=st.integers(1, 4), max_bytes=BYTES)
    def promote(self, count: int, max_bytes: int) -> None:
        self._did("promote")
        self.model.promote(count, self.world.promote(count, max_bytes=max_bytes))

    def _newcomer(self) -> Process:
        run = f"r{len(self.processes)}"
        self._open(run, 0)
        self.everything_holds()
        return self.processes[-1]

    def _lose(self, run: str, count: int, max_bytes: int) -> None:
        self.everything_holds()
        self._expire(run)
        for _ in range(100):
            self.everything_holds()
            if self._reap(run, count, max_bytes) in {"done", "noted"}:
                return
        raise AssertionError("reaping never ends")

    def _expire(self, run: str) -> None:
        self._did("time", run)
        if self.model.leases.get(run) == LIVE:
            self.world.admin.zincrby(full("runs"), -LONG, run)
        self.model.expire(run)
        if run in self.seen.get("runs", {}):
            self.seen["runs"][run] = self.model.leases[run]

    def _reap(self, run: str, count: int, max_bytes: int) -> str:
        self._did("reap", run)
        reply = self.world.reap(run, count, max_bytes=max_bytes, lease=HOUR_MS)
        assert reply == self.model.reap(run, count, max_bytes)
        return str(reply[0])

    # -- time

    @precondition(lambda self: self.model.scheduled)
    @rule(which=WHICH, all_of_them=st.booleans())
    def fall_due(self, which: int, all_of_them: bool) -> None:
        self._did("time")
        later = sorted(entry for entry, due in self.model.scheduled.items() if due > self.model.start)
        for entry in later if all_of_them else later[which : which + 1]:
            self.world.admin.zincrby(full("scheduled"), -LONG, raw(entry))
            self.model.fall_due(entry)

    @precondition(lambda self: self.model.taken)
    @rule()
    def limit_window_ends(self) -> None:
        self._did("time")
        self.world.admin.hincrby(full("limit"), "w", -1)
        self.model.next_window()
        for process in self.processes:
            for one in {id(one): one for one in _known(process)}.values():
                one.window = str(int(one.window) - 1) if one.window else ""

    # -- a person, and accidents

    @rule(go_on=st.sampled_from([False, True, True, True]))
    def pause(self, go_on: bool) -> None:
        self._did("pause")
        reason = "" if go_on else "a reason"
        assert self.world.call("pause", ["paused"], [reason, 0]) == self.model.pause(reason)

    @rule(limit=st.one_of(st.none(), st.tuples(st.integers(1, 6), st.sampled_from(PERIODS))))
    def limit_queue(self, limit: tuple[int, int] | None) -> None:
        self._did("limit_queue")
        spec = f"{limit[0]} {limit[1]}" if limit else ""
        assert self.world.call("limit_queue", ["config", "limit"], [spec]) == 1
        self.model.limit_queue(limit)

    @precondition(lambda self: self.model.dead)
    @rule(which=WHICH)
    def redrive(self, which: int) -> None:
        self._did("redrive")
        index, name, task = self._letter(which)
        stored = reset(raw(task), parse(raw(task)))
        keys = ["dead", "pending", "totals"]
        assert self.world.call("redrive", keys, [name, stored]) == 1
        self.model.redrive(index, str(text(stored)))
        self.everything_holds()
        assert self.world.call("redrive", keys, [name, stored]) == 0

    @precondition(lambda self: self.model.dead)
    @rule(which=WHICH)
    def discard(self, which: int) -> None:
        self._did("discard")
        index, name, task = self._letter(which)
        assert self.world.call("discard", ["dead", "totals"], [name]) == 1
        assert self.world.call("discard", ["dead", "totals"], [name]) == 0
        self.model.discard(index)
        self.ledger.deleted[tasks.token(task)] += 1

    @precondition(lambda self: self.ledger.accepted.total() > 12)
    @rule(place=st.sampled_from(["pending", "recovered", "suspects", "scheduled", "dead"]))
    def purge(self, place: str) -> None:
        self._did("purge")
        bare = {"pending": 0, "dead": 0}.get(place, 1)
        here = [letter.task for letter in self.model.dead] if place == "dead" else list(getattr(self.model, place))
        self.ledger.deleted += Counter(tasks.token(task[bare:]) for task in here)
        assert self.world.call("purge", [place, "totals"], []) == self.model.purge(place)

    @rule()
    def scripts_are_forgotten(self) -> None:
        self._did("flush")
        self.world.admin.script_flush("SYNC")

    def _letter(self, which: int) -> tuple[int, str, str]:
        index = which % len(self.model.dead)
        name, _ = self.world.admin.xrange(full("dead"))[index]
        return index, str(text(name)), self.model.dead[index].task

    def _process(self, which: int, wanted: Callable[[Process], bool] = lambda _: True) -> Process:
        """Return one that is as `wanted`, or, to see that nothing happens, one that is not."""
        fit = [one for one in self.processes if wanted(one)] or self.processes
        return fit[which % len(fit)]

    def _alive(self, process: Process) -> bool:
        return self.model.leases.get(process.run) == LIVE

    def _lost(self, process: Process) -> bool:
        return not self._alive(process)

    def _did(self, what: str, run: str = "") -> str:
        self.step = Step(what, run)
        return run


def _holds(process: Process) -> bool:
    return bool(process.hand)


def _known(process: Process) -> list[Claimed]:
    return [*process.hand, *(decision.held for decision in process.sent)]
