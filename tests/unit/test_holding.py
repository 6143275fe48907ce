"""What a run believes it holds, and how a look at its own lists puts that right."""

from __future__ import annotations

from taskbatch.holding import Decision, Holding
from taskbatch.keys import Keys
from taskbatch.outcome import Ack, Release
from taskbatch.queue import Claim, RunQueue
from taskbatch.settlement import Claimed
from taskbatch.task import Task


def holding(*held: Claimed) -> Holding:
    made = Holding(RunQueue(Keys("taskbatch", "default"), "r1"))
    for one in held:
        made.add(one)
    return made


def one(name: str = "a", n: int = 0) -> Claimed:
    """Return a held task; an empty name makes one without an id."""
    task = Task(id=name, type="note")
    raw = task.SerializeToString()
    return Claimed(n, raw if n == 0 else b"%d" % n + raw, task)


def done(held: Claimed) -> Decision:
    return Decision(held, Ack(), 0.1)


def lists(*held: Claimed) -> list[list[bytes]]:
    """Return own lists as Redis would show them: what was claimed last is left."""
    return [[each.entry for each in reversed(held) if each.n == n] for n in range(3)]


# -- any doubt ------------------------------------------------------------------------------------------


def test_what_is_as_believed_stays() -> None:
    a, b, c = one("a"), one("b", 1), one("c", 2)
    held = holding(a, b, c)

    found = held.reconcile(lists(a, b, c), lease_kept=True)

    assert (found.adopted, found.again, found.applied, found.lost, found.gone) == ([], [], [], [], [])
    assert held.lengths == [1, 1, 1]
    assert all(held.holds(each) for each in (a, b, c))


def test_unknown_and_there_is_adopted_in_the_order_of_the_claim() -> None:
    known, first, second, other = one("known"), one("first"), one("second"), one("other", 1)
    held = holding(known)

    found = held.reconcile(lists(known, first, second, other), lease_kept=True)

    assert found.adopted == [(0, first.entry), (0, second.entry), (1, other.entry)]
    assert held.holds(known)


def test_decided_and_still_there_is_settled_again() -> None:
    a = one("a")
    held = holding(a)
    held.decided.append(done(a))

    found = held.reconcile(lists(a), lease_kept=True)

    assert held.decided == [done(a)]
    assert held.holds(a)
    assert found.again == []


def test_decided_and_still_there_without_an_id_runs_again() -> None:
    """Whether this is ours or an equal one a lost claim has brought cannot be told."""
    a = one("")
    held = holding(a)
    held.decided.append(done(a))

    found = held.reconcile(lists(a), lease_kept=True)

    assert found.again == [a]
    assert held.decided == []
    assert held.holds(a)
    assert held.lengths == [1, 0, 0]


def test_decided_and_gone_with_the_lease_unbroken_was_applied() -> None:
    a = one("a")
    held = holding(a)
    held.decided.append(done(a))

    found = held.reconcile(lists(), lease_kept=True)

    assert found.applied == [done(a)]
    assert found.lost == found.gone == []
    assert not held.holds(a)
    assert held.lengths == [0, 0, 0]


def test_decided_and_gone_with_the_lease_broken_is_lost() -> None:
    a = one("a")
    held = holding(a)
    held.decided.append(done(a))

    found = held.reconcile(lists(), lease_kept=False)

    assert found.lost == [done(a)]
    assert found.applied == []


def test_undecided_and_gone_was_taken_away() -> None:
    a = one("a")
    held = holding(a)

    found = held.reconcile(lists(), lease_kept=False)

    assert found.gone == [a]
    assert not held.holds(a)


def test_the_same_bytes_in_another_list_are_not_ours() -> None:
    a = one("a", 1)
    held = holding(a)

    found = held.reconcile([[], [], [a.entry]], lease_kept=True)

    assert found.gone == [a]
    assert found.adopted == [(2, a.entry)]


# -- identical bytes --------------------------------------------------------------------------------------


def test_of_two_equal_tasks_the_decided_one_was_settled() -> None:
    a, twin = one(""), one("")
    held = holding(a, twin)
    held.decided.append(done(a))

    found = held.reconcile(lists(twin), lease_kept=True)

    assert found.applied == [done(a)]
    assert held.holds(twin)
    assert found.again == found.gone == []


def test_two_equal_tasks_both_decided_one_still_there() -> None:
    a, twin = one("a"), one("a")
    held = holding(a, twin)
    held.decided += [done(a), done(twin)]

    found = held.reconcile(lists(a), lease_kept=True)

    assert len(found.applied) == 1
    assert len(held.decided) == 1
    assert held.lengths == [1, 0, 0]


def test_equal_bytes_that_came_with_a_lost_claim_are_adopted() -> None:
    a, twin = one(""), one("")
    held = holding(a)

    found = held.reconcile(lists(a, twin), lease_kept=True)

    assert found.adopted == [(0, twin.entry)]
    assert held.holds(a)


def test_a_settle_and_a_claim_in_one_lost_reply() -> None:
    """One round trip settled `a`, left `b` alone and brought `c`."""
    a, b, c = one("a"), one("b"), one("c")
    held = holding(a, b)
    held.decided.append(done(a))

    found = held.reconcile(lists(b, c), lease_kept=True)

    assert found.applied == [done(a)]
    assert found.adopted == [(0, c.entry)]
    assert held.holds(b)


# -- batches ------------------------------------------------------------------------------------------------


def test_a_batch_is_bounded_in_number() -> None:
    held = holding()
    for i in range(1500):
        a = one(f"{i}")
        held.add(a)
        held.decided.append(done(a))

    assert len(held.batch()) == 1000


def test_a_batch_is_bounded_in_bytes_but_never_empty() -> None:
    held = holding()
    for _ in range(3):
        big = Claimed(0, b"x" * 2_000_000, None)
        held.add(big)
        held.decided.append(done(big))

    assert len(held.batch()) == 1


def test_a_settled_batch_is_let_go() -> None:
    a, b = one("a"), one("b")
    held = holding(a, b)
    held.decided.append(Decision(a, Release(0.0, "shutdown"), None))

    held.settled(held.batch())

    assert held.decided == []
    assert not held.holds(a)
    assert held.lengths == [1, 0, 0]


# -- what a claim answers -----------------------------------------------------------------------------------


def claim(status: str = "ok", at_ms: int = 0, entries: list[tuple[int, bytes]] | None = None) -> Claim:
    return Claim(status, 1000, (0, 0, 0), "", at_ms, entries or [])


def test_an_empty_queue_is_dry_for_a_moment() -> None:
    held = holding()

    held.answered(claim(), 50.0, suspect=False)

    assert held.dry
    assert not held.resting
    assert held.dry_until == 50.1


def test_no_suspect_does_not_mean_an_empty_queue() -> None:
    held = holding()

    held.answered(claim(), 50.0, suspect=True)

    assert not held.dry


def test_a_paused_queue_rests_for_a_second() -> None:
    held = holding()

    held.answered(claim("paused"), 50.0, suspect=False)

    assert (held.paused, held.resting, held.dry_until) == (True, True, 51.0)


def test_a_limited_queue_rests_until_permits_are_free() -> None:
    held = holding()

    held.answered(claim("limited", at_ms=1400), 50.0, suspect=False)

    assert held.resting
    assert held.due_in == 0.4
    assert held.dry_until == 50.4


def test_a_queue_that_gives_again_is_not_dry() -> None:
    held = holding()
    held.answered(claim("paused"), 50.0, suspect=False)

    held.answered(claim(entries=[(0, b"x")]), 51.0, suspect=False)

    assert (held.dry, held.paused, held.resting) == (False, False, False)
