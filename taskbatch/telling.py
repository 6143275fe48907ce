"""Counting and logging what happened, once each: when an attempt failed, and when an outcome is written."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from taskbatch.outcome import Ack, Dead, Release, Retry
from taskbatch.report import MAX_LISTED

if TYPE_CHECKING:
    from taskbatch.holding import Decision
    from taskbatch.queue import RunQueue
    from taskbatch.report import Tally
    from taskbatch.settlement import Claimed

log = logging.getLogger("taskbatch.tasks")


def tell_settled(tally: Tally, queue: RunQueue, decision: Decision, *, done: bool) -> None:
    """Count one outcome that was written (`done`), or a task that was taken away before."""
    held, outcome, duration = decision
    kind = held.kind
    if duration is not None:
        tally.seconds[kind] = tally.seconds.get(kind, 0.0) + duration
    if not done:
        tally.count(kind, "lost")
        _log(queue, decision, logging.WARNING, "was taken away before its outcome was written")
        return
    match outcome:
        case Ack():
            tally.count(kind, "succeeded")
        case Retry(after, error):
            tally.count(kind, "retried")
            tally.failed_attempts += 1
            _log(queue, decision, logging.WARNING, f"failed, again in {after:.1f} s: {error}")
        case Release(after, reason):
            tally.count(kind, "released")
            tally.released_by[reason] += 1
            _log(queue, decision, logging.DEBUG, f"released ({reason}) for {after:.1f} s")
        case Dead(reason, error):
            tally.count(kind, "expired" if reason == "expired" else "dead")
            tally.failed_attempts += reason == "failed"
            if len(tally.dead_letters) < MAX_LISTED:
                tally.dead_letters.append(
                    {
                        "queue": queue.keys.queue,
                        "id": held.task.id if held.task is not None else "",
                        "type": held.task.type if held.task is not None else "",
                        "reason": reason,
                        "error": error,
                    }
                )
            _log(queue, decision, logging.ERROR, f"is dead ({reason}): {error}")


def tell_gone(tally: Tally, queue: RunQueue, held: Claimed) -> None:
    """Count a task that this run claimed and has no say over any more."""
    tally.count(held.kind, "lost")
    log.warning("queue %s: a task (%s) was taken away, or is left to the reaper", queue.keys.queue, held.kind)


def _log(queue: RunQueue, decision: Decision, level: int, what: str) -> None:
    if not log.isEnabledFor(level):
        return
    task = decision.held.task
    fields = {
        "queue": queue.keys.queue,
        "run": queue.run,
        "task": task.id if task is not None else "",
        "type": task.type if task is not None else "",
        "attempt": task.failures + 1 if task is not None else 0,
    }
    if task is None:
        log.log(level, "something in queue %s that is no task %s", queue.keys.queue, what, extra=fields)
        return
    log.log(level, "task %s (%s) attempt %d %s", fields["task"], fields["type"], fields["attempt"], what, extra=fields)
