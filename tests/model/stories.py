"""Longer chains of events, which single rules would come upon too seldom. Everything is checked between the steps."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.lua.keyspace import text
from tests.lua.world import LOTS
from tests.model import tasks
from tests.model.machine import BYTES, ENDS, HOUR_MS, PERIODS, Process, QueueMachine


class StoryMachine(QueueMachine):
    """A queue to which whole stories happen, too."""

    @rule(want=st.integers(1, 4), count=st.integers(1, 3), max_bytes=BYTES)
    def a_run_dies_holding_tasks(self, want: int, count: int, max_bytes: int) -> None:
        process = self._newcomer()
        self._claim(process, want, LOTS)
        process.hand.clear()
        self._lose(process.run, count, max_bytes)

    @precondition(lambda self: self.model.suspects)
    @rule(count=st.integers(1, 3), times=st.integers(1, 2))
    def runs_die_holding_a_suspect(self, count: int, times: int) -> None:
        for _ in range(times):
            process = self._newcomer()
            self._claim_suspect(process)
            process.hand.clear()
            self._lose(process.run, count, LOTS)

    @rule(crashes=st.integers(1, 4), end=st.sampled_from(ENDS), put_off=st.booleans())
    def a_task_survives_crashes_and_is_settled(self, crashes: int, end: str, put_off: bool) -> None:
        """Once, twice, three times; the fourth time it is dead."""
        if not self._is_open():
            return
        self._push("", HOUR_MS)
        self.everything_holds()
        self.fall_due(0, True)
        for n in range(crashes):
            self.everything_holds()
            process = self._newcomer()
            self._take_one(process, suspect=n > 1)
            process.hand.clear()
            self._lose(process.run, 1, LOTS)
        process = self._newcomer()
        self._take_one(process, suspect=crashes > 1)
        self.everything_holds()
        if process.hand:
            self._settle(process, [self._decided(one, "limit" if put_off else end) for one in process.hand])
            self.everything_holds()
        if self.model.scheduled:
            self.fall_due(0, True)
            self.everything_holds()
            self.promote(4, LOTS)

    @rule(want=st.integers(2, 4))
    def a_run_that_is_half_reaped_gets_nothing(self, want: int) -> None:
        for _ in range(want):
            self._push("", 0)
        process = self._newcomer()
        self._claim(process, want, LOTS)
        self.everything_holds()
        self._expire(process.run)
        self._reap(process.run, 1, LOTS)
        for refused in (
            lambda: self._renew(process.run),
            lambda: self._open(process.run, 0),
            lambda: self._claim(process, want, LOTS),
            lambda: self._claim_suspect(process),
        ):
            self.everything_holds()
            refused()
        self._lose(process.run, 1, LOTS)

    @rule(key=st.sampled_from(["u", "v"]))
    def a_deduplication_key_has_a_new_holder(self, key: str) -> None:
        if not self._is_open():
            return
        process = self._newcomer()
        self.deduplication_ends(key)
        self._push(key, HOUR_MS)
        self.everything_holds()
        self.fall_due(0, True)
        self.deduplication_ends(key)
        self._push(key, 0)
        self._claim(process, 6, LOTS)
        self.everything_holds()
        if process.hand:
            self._settle(process, [self._decided(one, "ok") for one in process.hand])
            process.hand.clear()

    @rule(want=st.integers(2, 4), ends=st.permutations(ENDS), later=st.booleans())
    def what_a_limited_run_has_not_started_does_not_count(self, want: int, ends: list[str], later: bool) -> None:
        self.limit_queue((want + 1, PERIODS[0]))
        for _ in range(want):
            self._push("", 0)
        process = self._newcomer()
        self._claim(process, want, LOTS)
        self.everything_holds()
        if later and self.model.taken:
            self.limit_window_ends()
            self.everything_holds()
        if process.hand:
            self._settle(process, [self._decided(*one) for one in zip(process.hand, ends, strict=False)])
            process.hand.clear()
        self.everything_holds()
        self._claim(process, want + 2, LOTS)
        self.everything_holds()
        self.limit_queue(None)

    def _push(self, unique: str, delay: int) -> None:
        self.numbers += 1
        name = f"id{self.numbers}"
        self._enqueue(str(text(tasks.make(self.numbers, id=name, unique=unique))), name, delay, unique)

    def _is_open(self) -> bool:
        return not self.model.paused and self.model.limit is None

    def _take_one(self, process: Process, *, suspect: bool) -> None:
        if suspect:
            self._claim_suspect(process)
        else:
            self._claim(process, 1, LOTS)
