"""Opening and closing a run in each of its queues."""

from __future__ import annotations

import json
import logging
import os
import secrets
from typing import TYPE_CHECKING, Any, TypeVar

from taskbatch import __version__
from taskbatch.connect import checked
from taskbatch.errors import REDIS_TROUBLE, ConfigError, ExitCode, TaskbatchError
from taskbatch.keys import queue_names
from taskbatch.queue import SCHEMA, Ending, RunQueue
from taskbatch.report import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskbatch.connect import Link
    from taskbatch.report import Tally
    from taskbatch.scripts import Call, Scripts
    from taskbatch.settings import RunSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_CLOSINGS = 3
"""How often a run that still holds something is cleared before it is left to the reaper."""

_RESULTS: dict[int, str] = {
    ExitCode.UNAVAILABLE: "error",
    ExitCode.INTERNAL: "error",
    ExitCode.CONFIG: "error",
    ExitCode.INTERRUPTED: "interrupted",
}


def new_run_id() -> str:
    """Return a random id of 64 bits."""
    return secrets.token_hex(8)


def describe_run(run: str, started_at: float) -> str:
    """Return what `runs:info` says of a run: where it runs and since when, as JSON."""
    env = os.environ
    info: dict[str, Any] = {
        "run": run,
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "version": __version__,
        "started_ms": int(started_at * 1000),
    }
    if pod := env.get("TASKBATCH_POD") or (env.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in env else None):
        info["pod"] = pod
    if "GITHUB_RUN_ID" in env:
        info["workflow_url"] = (
            f"{env.get('GITHUB_SERVER_URL', '')}/{env.get('GITHUB_REPOSITORY', '')}/actions/runs/{env['GITHUB_RUN_ID']}"
        )
    return json.dumps(info)


def open_runs(scripts: Scripts, queues: Sequence[RunQueue], run: RunSettings, info: str) -> list[RunQueue]:
    """Register the lease in each queue and return those that let the run in (others have enough runs).

    Raises ConfigError for a key of a wrong type or a newer schema; then nothing stays registered.
    """
    calls = [queue.open(run.lease, info, run.max_concurrent_runs) for queue in queues]
    replies = repeated(scripts.link, lambda: scripts.exchange(calls))
    opened = []
    try:
        for queue, reply in zip(queues, replies, strict=True):
            status, found = checked(reply)[:2]
            if status == b"schema":
                msg = f"queue {queue.keys.queue} has schema {int(found)}, this taskbatch knows {SCHEMA}: update it"
                raise ConfigError(msg)
            if status == b"ok":
                opened.append(queue)
    except TaskbatchError:
        for queue in queues:
            scripts.link.exchange([("ZREM", queue.keys.runs, queue.run), ("HDEL", queue.keys.runs_info, queue.run)])
        raise
    _remember(scripts, run)
    return opened


def close_runs(
    scripts: Scripts,
    queues: Sequence[RunQueue],
    tally: Tally,
    *,
    stop_reason: str,
    code: int,
    started_at: float,
    duration: float,
    clear: Callable[[], None],
) -> None:
    """End the run in each queue and write its history; `clear` hands back what is still in the own lists."""
    summary = {"claimed": tally.claimed, **{name: tally.outcomes[name] for name in OUTCOMES}, "reaped": tally.reaped}
    ending = Ending(
        result=_RESULTS.get(code, "success"),
        stop_reason=stop_reason,
        exit_code=code,
        started_ms=int(started_at * 1000),
        duration=duration,
        summary=json.dumps(summary),
        idle=tally.idle,
    )
    for queue in queues:
        call = queue.close(ending)
        status, repeats = b"held", 0

        def close(call: Call = call) -> bytes:
            nonlocal repeats
            repeats += 1
            return bytes(scripts.call(*call)[0])

        for _ in range(MAX_CLOSINGS):
            repeats = 0
            status = repeated(scripts.link, close)
            if status != b"held":
                break
            clear()
        # Gone when asked again: it was closed, and only the reply was lost.
        if status == b"gone" and repeats == 1:
            log.warning("queue %s: the lease was lost before the run could be closed", queue.keys.queue)


def _remember(scripts: Scripts, run: RunSettings) -> None:
    """Note the queues' names for `status`; in another slot and no task state, so it never matters if it fails."""
    try:
        checked(scripts.link.exchange([("SADD", queue_names(run.prefix), *run.queues)])[0])
    except TaskbatchError as error:
        log.debug("queue names not noted: %s", error)


def repeated(link: Link, action: Callable[[], T]) -> T:
    """Do what may be done twice (open, close, reap, read), and once more if Redis fails or refuses the first time."""
    try:
        return action()
    except REDIS_TROUBLE as error:
        log.warning("%s; trying once more", error)
        link.connect()
        return action()
