"""From an outcome to what a settle is to do, told a second time: the rules compare it with what it did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from taskbatch.outcome import Ack, Dead, Outcome, Release, Retry
from taskbatch.task import Task, parse
from tests.lua.keyspace import raw, text
from tests.model.model import Fate

if TYPE_CHECKING:
    from taskbatch.holding import Decision
    from taskbatch.settlement import Claimed, Settlement

DURATION = 0.02
"""How long every job ran, in seconds."""

PLACES = {"ack": "done", "schedule": "scheduled", "return": "back", "dead": "dead"}
COUNTED = ("failures", "interruptions", "unroutable")


def fate(decision: Decision, written: Settlement) -> Fate:
    """Return what is to become of a task, after having checked that the bytes `written` are right for it."""
    held, outcome, ran = decision.held, decision.outcome, decision.duration is not None
    check_stored(held, outcome, text(written.stored), written.verb)
    task = held.task
    frees = (task.unique_key, task.id) if isinstance(outcome, Ack) and task is not None and task.unique_key else None
    after = outcome.after if isinstance(outcome, (Retry, Release)) else 0.0
    return Fate(
        held.n,
        str(text(held.entry)),
        PLACES[written.verb],
        str(text(written.stored)),
        int(after * 1000),
        outcome.reason if isinstance(outcome, Dead) else "",
        counts(held, outcome, ran=ran),
        "" if ran else held.window,
        frees,
    )


def counts(held: Claimed, outcome: Outcome, *, ran: bool) -> Counter[str]:
    """Return what the totals are to grow by."""
    kind, task = held.kind, held.task
    grown: Counter[str] = Counter()
    match outcome:
        case Ack():
            grown[f"tasks:succeeded:{kind}"] = 1
        case Retry():
            grown[f"tasks:retried:{kind}"] = grown[f"failed:{kind}"] = 1
        case Release(_, reason):
            grown[f"tasks:released:{kind}"] = grown[f"released:{reason}"] = 1
        case Dead("expired"):
            grown[f"tasks:expired:{kind}"] = 1
        case Dead(reason):
            grown[f"tasks:dead:{kind}"] = 1
            grown[f"failed:{kind}"] = int(reason == "failed")
    if ran:
        grown[f"duration:0.025:{kind}"] = 1
        grown[f"duration_sum_us:{kind}"] = 20_000
        first = task is not None and not (task.failures or task.interruptions or task.unroutable)
        if first and task is not None and task.enqueued_at_ms:
            grown["latency:+Inf"] = 1
            grown["latency_sum_ms"] = held.claimed_ms - task.enqueued_at_ms
    return +grown


def check_stored(held: Claimed, outcome: Outcome, stored: str, verb: str) -> None:
    """Check digit and counters of what is stored instead; '' = unchanged."""
    grows = {
        Retry: "failures",
        Release: getattr(outcome, "counted", ""),
        Dead: {"failed": "failures", "interrupted": "interruptions", "unroutable": "unroutable"}.get(
            getattr(outcome, "reason", ""), ""
        ),
    }.get(type(outcome), "")
    if not stored:
        assert not grows, f"{outcome} was not counted"
        assert verb != "schedule"
        return
    bare = verb == "dead" or (verb == "return" and held.n == 0)
    if not bare:
        # A failure begins anew: the process survived it.
        assert stored[0] == ("0" if isinstance(outcome, Retry) else str(held.digit))
    new, old = parse(raw(stored if bare else stored[1:])), held.task
    assert new is not None
    assert old is not None
    assert new.id == (old.id or new.id) != ""
    for name in COUNTED:
        assert getattr(new, name) == getattr(old, name) + (name == grows), name
    assert _rest(new) == _rest(old), "something else was changed"


def _rest(task: Task) -> bytes:
    rest = Task()
    rest.CopyFrom(task)
    for name in (*COUNTED, "id", "last_error", "requeue_nonce"):
        rest.ClearField(name)
    return rest.SerializeToString(deterministic=True)
