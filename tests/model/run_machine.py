"""Runs that lose replies: what they believe is compared with the truth, which is what Redis holds and counts.

The real `Exchange` settles, claims and recounts, over a link that fails. The machine stands for the jobs: it
decides what comes of a task, and it stands for everybody else: the reaper, the clock, the network's late commands.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from taskbatch.clock import boot_time
from taskbatch.connect import checked
from taskbatch.exchange import Exchange, Got
from taskbatch.holding import Decision
from taskbatch.keys import Keys
from taskbatch.outcome import Ack, Dead, Outcome, Release, Retry
from taskbatch.queue import Ending, RunQueue, read_reaped
from taskbatch.report import OUTCOMES, Tally
from taskbatch.scripts import Scripts, script
from taskbatch.task import parse
from tests.lua.keyspace import raw, text
from tests.model import tasks
from tests.model.flaky import FAULTS, FlakyLink
from tests.model.invariants import a_suspect_is_alone, stored, totals_add_up
from tests.model.look import look
from tests.model.model import LONG

if TYPE_CHECKING:
    from taskbatch.connect import Link
    from taskbatch.settings import RedisSettings
    from taskbatch.settlement import Claimed

KEYS = Keys("taskbatch", "q")
SCRIPTS = ("open_run", "claim", "claim_suspect", "settle", "renew", "reap", "close_run")
LEASE = 3600.0
WHICH = st.integers(0, 5)
OUTCOMES_OF_JOBS: tuple[Outcome, ...] = (
    Ack(),
    Ack(),
    Ack(),
    Retry(LEASE, "no"),
    Release(0.0, "shutdown"),
    Release(LEASE, "limit"),
    Dead("failed", "no"),
)
ENDS = st.lists(st.tuples(WHICH, st.sampled_from(OUTCOMES_OF_JOBS)), min_size=1, max_size=4)
TROUBLE = st.tuples(st.sampled_from(("", "", *FAULTS)), st.sampled_from(("", "", "", "", *FAULTS)))
"""What happens to an exchange, and to the first look at the own lists after it."""


class Watched(Exchange):
    """An exchange that says how often it recounted."""

    recounts = 0

    def recover(self, why: object) -> Got:
        self.recounts += 1
        return super().recover(why)


class Worker:
    """One run; `working` is what its jobs are busy with.

    `disturbed`: something happened behind its back; `haunted`: and it has not recounted since.
    """

    def __init__(self, settings: RedisSettings, run: str) -> None:
        self.link = FlakyLink(settings)
        self.queue = RunQueue(KEYS, run)
        self.tally = Tally()
        self.scripts = Scripts(self.link)
        self.exchange = Watched(
            self.scripts,
            [self.queue],
            self.tally,
            prefix=KEYS.prefix,
            lease=LEASE,
            lease_until=boot_time() + LEASE,
            patience=lambda: 10.0,
        )
        self.holding = self.exchange.holdings[0]
        self.working: list[Claimed] = []
        self.haunted = self.disturbed = False
        checked(self.scripts.exchange([self.queue.open(LEASE, "{}", 0)])[0])


class RunMachine(RuleBasedStateMachine):
    """Two runs at a time on one queue."""

    def __init__(self, settings: RedisSettings, eyes: Link) -> None:
        super().__init__()
        self.settings = settings
        self.eyes = eyes
        self.scripts = Scripts(eyes)
        eyes.call("FLUSHALL")
        # A script that is not known does nothing, also if its reply is lost: each example begins the same way.
        for name in SCRIPTS:
            eyes.call("SCRIPT", "LOAD", script(name).source)
        self.count = self.accepted = self.started = 0
        self.acked: set[str] = set()
        self.ended: list[Tally] = []
        self.exact = True
        self.gone: set[str] = set()
        self.workers: list[Worker] = []

    def teardown(self) -> None:
        for worker in self.workers:
            worker.link.close()

    @initialize(count=st.integers(0, 5))
    def begin(self, count: int) -> None:
        self.workers = [self._worker(), self._worker()]
        self.push(count, 0)

    def push(self, new: int, twins: int) -> None:
        """Enqueue new tasks, and some that differ in nothing and have no id."""
        for _ in range(new):
            self.count += 1
            self.eyes.call("LPUSH", KEYS.pending, tasks.make(self.count, id=f"id{self.count}"))
        for _ in range(twins):
            self.eyes.call("LPUSH", KEYS.pending, tasks.make(0, id=""))
        self.accepted += new + twins

    # -- what the runs believe, and what is true

    @invariant()
    def nothing_is_lost(self) -> None:
        view = look(self.eyes)
        totals: Counter[str] = Counter()
        for name, times in view.get("totals", {}).items():
            if name.startswith("tasks:"):
                totals[name.split(":")[1]] += times
        here = [task for _, _, task in stored(view)]
        assert len(here) + totals["succeeded"] == self.accepted
        # Only a task whose job returned is done, and what is done stays done.
        names = {parsed.id for task in here if (parsed := parse(raw(task))) is not None}
        known = {f"id{i}" for i in range(1, self.count + 1)}
        assert known - names <= self.acked
        assert not self.gone & names
        self.gone |= known - names
        totals_add_up(view)
        a_suspect_is_alone(view)
        self._reports_are_true(view.get("totals", {}).get("claimed", 0), totals)
        for worker in self.workers:
            self._believes_what_is_true(worker, view)

    def _reports_are_true(self, claimed: int, totals: Counter[str]) -> None:
        told: Counter[str] = Counter()
        for tally in [*self.ended, *(worker.tally for worker in self.workers)]:
            told += tally.outcomes
        for worker in self.workers:
            assert worker.tally.claimed == worker.tally.outcomes.total() + len(worker.holding.held)
        if self.exact:
            assert {name: told[name] for name in OUTCOMES} == {name: totals[name] for name in OUTCOMES}
            assert sum(one.claimed for one in [*self.ended, *(one.tally for one in self.workers)]) == claimed
        # Whatever happened: no run says that it wrote what was not written.
        assert all(told[name] <= totals[name] for name in OUTCOMES if name != "lost")

    @staticmethod
    def _believes_what_is_true(worker: Worker, view: dict[str, Any]) -> None:
        holding = worker.holding
        known = [*map(id, worker.working), *(id(one.held) for one in holding.decided)]
        assert sorted(known) == sorted(holding.held), "each is worked on or decided, and never both"
        assert worker.disturbed or not worker.tally.outcomes["lost"]
        if worker.haunted or worker.exchange.lease_lost:
            return
        for n in range(3):
            believed = Counter(text(one.entry) for one in holding.held.values() if one.n == n)
            assert believed == Counter(view.get(f"processing:{worker.queue.run}:{n}", []))
            assert holding.lengths[n] == believed.total()

    # -- a run

    @rule(which=WHICH, want=st.integers(0, 4), trouble=TROUBLE)
    def settle_and_claim(self, which: int, want: int, trouble: tuple[str, ...]) -> None:
        self._settle_and_claim(self._one(which), want, trouble)

    @rule(which=WHICH, new=st.integers(0, 2), twins=st.integers(0, 2), want=st.integers(1, 4), trouble=TROUBLE)
    def claim_what_is_new(self, which: int, new: int, twins: int, want: int, trouble: tuple[str, ...]) -> None:
        self.push(new, twins)
        self._settle_and_claim(self._one(which), want, trouble)

    @rule(which=WHICH, want=st.integers(1, 4), ends=ENDS, claiming=TROUBLE, settling=TROUBLE)
    def work(
        self,
        which: int,
        want: int,
        ends: list[tuple[int, Outcome]],
        claiming: tuple[str, ...],
        settling: tuple[str, ...],
    ) -> None:
        worker = self._one(which)
        self.push(want, 1)
        self._settle_and_claim(worker, want, claiming)
        self.nothing_is_lost()
        self._jobs_end(worker, ends)
        self._settle_and_claim(worker, 1, settling)

    def _settle_and_claim(self, worker: Worker, want: int, trouble: tuple[str, ...]) -> None:
        # As the run loop does: beside a suspect it claims nothing.
        claiming = want > 0 and not worker.holding.lengths[2]
        self._swap(worker, trouble, worker.queue.claim(want) if claiming else None)

    @rule(which=WHICH, trouble=TROUBLE)
    def claim_suspect(self, which: int, trouble: tuple[str, ...]) -> None:
        worker = self._one(which)
        if not worker.holding.held:
            self._swap(worker, trouble, worker.queue.claim_suspect(), suspect=True)

    @rule(which=WHICH, ends=ENDS)
    def jobs_end(self, which: int, ends: list[tuple[int, Outcome]]) -> None:
        self._jobs_end(self._one(which), ends)

    def _jobs_end(self, worker: Worker, ends: list[tuple[int, Outcome]]) -> None:
        for index, outcome in ends:
            if worker.working:
                held = worker.working.pop(index % len(worker.working))
                ran = not isinstance(outcome, Release)
                worker.holding.decided.append(Decision(held, outcome, 0.02 if ran else None))
                if isinstance(outcome, Ack) and held.task is not None:
                    self.acked.add(held.task.id)

    @rule(which=WHICH, trouble=TROUBLE)
    def lease_is_renewed(self, which: int, trouble: tuple[str, ...]) -> None:
        worker = self._one(which)
        worker.exchange.lease_until = min(worker.exchange.lease_until, boot_time() + 60)
        self._swap(worker, trouble, None)

    @rule(which=WHICH)
    def end(self, which: int) -> None:
        """Hand back what is not done; then the run holds nothing, in its own eyes and in Redis'."""
        worker = self._one(which)
        for _ in range(3):
            worker.holding.decided += [Decision(one, Release(0.0, "shutdown"), None) for one in worker.working]
            worker.working.clear()
            while worker.exchange.deciding:
                self._swap(worker, (), None)
            ending = Ending("success", "empty", 0, 0, 1.0, "{}", idle=False)
            status = checked(worker.scripts.exchange([worker.queue.close(ending)])[0])[0]
            if status != b"held" or worker.exchange.lease_lost:
                break
            self._take_on(worker, worker.exchange.recover("held"))
        lost = worker.exchange.lease_lost or worker.haunted
        assert status in ({b"closed", b"held", b"gone"} if lost else {b"closed"})
        worker.exchange.give_up_all()
        assert worker.tally.claimed == worker.tally.outcomes.total()
        if status == b"held":
            self._reap(worker)
        self._replace(worker)

    def _swap(self, worker: Worker, trouble: tuple[str, ...], claim: Any, *, suspect: bool = False) -> None:
        if worker.exchange.lease_lost:
            claim = None
        before = worker.exchange.recounts
        if any(trouble) and any(map(_may_look_untouched, worker.holding.decided)):
            # It may have been settled, and it or its twin claimed: all is well, but nobody can tell and count that.
            self.exact = False
        worker.link.faults = list(trouble)
        got = worker.exchange.swap(worker.holding if claim else None, claim, suspect=suspect)
        worker.link.faults = []
        if worker.exchange.recounts > before and not worker.link.ghosts:
            worker.haunted = False
        self._take_on(worker, got)
        if claim and not any(trouble) and not worker.scripts.reordered:
            lengths = [self.eyes.call("LLEN", name) for name in worker.queue.own_lists]
            assert worker.exchange.lease_lost or worker.holding.lengths == lengths, "it did not notice"

    def _take_on(self, worker: Worker, got: Got) -> None:
        mine = {one.task.id for one in worker.working if one.task is not None} - {""}
        for _, new, _ in got.new:
            for one in new:
                assert one.task is not None
                assert one.task.id not in mine, "it is being worked on already"
            worker.working += new
        worker.working = [one for one in worker.working if worker.holding.holds(one)]

    # -- what happens to it

    @rule(which=WHICH)
    def a_late_command_arrives(self, which: int) -> None:
        self._arrive(([one for one in self.workers if one.link.ghosts] or self.workers)[which % 2 - 1])

    @rule(which=WHICH, ends=ENDS, want=st.integers(1, 4))
    def a_claim_arrives_late(self, which: int, ends: list[tuple[int, Outcome]], want: int) -> None:
        worker = self._one(which)
        self.push(want + 1, 0)
        self._jobs_end(worker, ends)
        self._settle_and_claim(worker, want, ("late",))
        self.nothing_is_lost()
        self._arrive(worker)
        self.nothing_is_lost()
        self._settle_and_claim(worker, want, ())

    def _arrive(self, worker: Worker) -> None:
        for commands in worker.link.ghosts:
            self.eyes.exchange(commands)
            worker.haunted = worker.disturbed = True
            self.exact = False
        worker.link.ghosts.clear()

    @rule(which=WHICH, reaped=st.booleans())
    def lease_expires(self, which: int, reaped: bool) -> None:
        worker = self._one(which)
        self._expire(worker)
        if reaped:
            self._reap(worker)
            worker.haunted = worker.disturbed = True
            self.exact = False

    @rule(which=WHICH, want=st.integers(1, 4), ends=ENDS, trouble=TROUBLE)
    def overtaken_before_it_settles(
        self, which: int, want: int, ends: list[tuple[int, Outcome]], trouble: tuple[str, ...]
    ) -> None:
        worker = self._one(which)
        self.push(want, 0)
        self._settle_and_claim(worker, want, ())
        self._jobs_end(worker, ends)
        self.lease_expires(which, True)
        self.nothing_is_lost()
        self._settle_and_claim(worker, want, trouble)

    @rule(which=WHICH)
    def crash(self, which: int) -> None:
        worker = self._one(which)
        self._reap(worker)
        self.exact = False
        self._replace(worker)

    @rule()
    def everything_falls_due(self) -> None:
        for entry in self.eyes.call("ZRANGE", KEYS.scheduled, 0, -1):
            self.eyes.call("ZADD", KEYS.scheduled, 1, entry)

    @rule()
    def scripts_are_forgotten(self) -> None:
        self.eyes.call("SCRIPT", "FLUSH", "SYNC")

    def _expire(self, worker: Worker) -> None:
        score = self.eyes.call("ZSCORE", KEYS.runs, worker.queue.run)
        if score is not None and float(score) > LONG:
            self.eyes.call("ZADD", KEYS.runs, 1, worker.queue.run)

    def _reap(self, worker: Worker) -> None:
        self._expire(worker)
        while read_reaped(self.scripts.call(*RunQueue(KEYS, "reaper").reap(worker.queue.run, LEASE))).status == "more":
            pass

    def _one(self, which: int) -> Worker:
        return self.workers[which % len(self.workers)]

    def _worker(self) -> Worker:
        self.started += 1
        return Worker(self.settings, f"r{self.started}")

    def _replace(self, worker: Worker) -> None:
        # What it sent may still arrive; nobody waits for it, and it has no lease.
        worker.link.close()
        for commands in worker.link.ghosts:
            self.eyes.exchange(commands)
        new = self._worker()
        self.ended.append(worker.tally)
        self.workers[self.workers.index(worker)] = new


def _may_look_untouched(decision: Decision) -> bool:
    held, outcome, _ = decision
    return held.task is None or not held.task.id or (isinstance(outcome, Release) and outcome.after <= 0)
