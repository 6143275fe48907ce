"""What is measured. Each question returns a table: candidates in rows, the one to compare with is named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import wire
from bench.load import NOOP, REST, fill
from bench.measure import Samples, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis

    from bench.floors import Programs
    from bench.measure import Usage

THREADS = 16
OURS = "taskbatch"


@dataclass(frozen=True)
class Answer:
    """What was measured: `figures[candidate][what]`; `what` names the unit. Ratios are to `base`, by `compared`."""

    question: str
    base: str
    compared: str
    figures: dict[str, dict[str, Samples]]


def cold_start(programs: Programs, client: redis.Redis, rounds: int) -> Answer:
    """Ask what a whole run on an empty queue costs."""
    client.flushall()
    candidates = {
        "python -c pass": lambda: _process(programs.python("-c", "pass")),
        "redis-py, one LMOVE": lambda: _process(programs.by_hand("lmove_once")),
        OURS: lambda: _process(programs.taskbatch("run", "--wait", "0s")),
    }
    return Answer("A run on an empty queue, whole process", "python -c pass", "ms", in_turn(candidates, rounds))


def throughput(programs: Programs, client: redis.Redis, rounds: int, count: int) -> Answer:
    """Ask how many tasks a second that do nothing, start and end of the process included."""

    def measured(program: Callable[[], Usage], *, reported: bool = False) -> Callable[[], dict[str, float]]:
        def once() -> dict[str, float]:
            fill(client, count, "bench.noop", NOOP)
            before = wire.look(client)
            usage = program()
            used = wire.look(client).since(before)
            figures = {
                "tasks/s": count / usage.seconds,
                "CPU µs/task": usage.cpu / count * 1e6,
                "Redis µs/task": used.cpu / count * 1e6,
                "commands/task": used.commands / count,
                "scripts sent": used.calls.get("evalsha", 0) + used.calls.get("eval", 0),
                "wire B/task": used.bytes / count,
                "peak MiB": usage.peak,
            }
            if reported:
                figures["tasks/s, run alone"] = count / json.loads(usage.output)["duration_seconds"]
            return figures

        return once

    ours = ("drain", "--concurrency", str(THREADS), "--report", "json")
    candidates = {
        "loop: LMOVE, run, LREM": measured(lambda: programs.by_hand("loop")),
        f"the same, {THREADS} threads": measured(lambda: programs.by_hand("loop", str(THREADS))),
        OURS: measured(lambda: programs.taskbatch(*ours), reported=True),
    }
    title = f"{count:,} tasks of 100 bytes that do nothing, {THREADS} threads, whole process"
    return Answer(title, "loop: LMOVE, run, LREM", "tasks/s", in_turn(candidates, rounds, warm_up=False))


def short_tasks(programs: Programs, client: redis.Redis, rounds: int, count: int) -> Answer:
    """Ask how much longer than necessary tasks of 10 ms take, start and end of the process included."""
    ideal = count * 0.01 / THREADS

    def measured(program: Callable[[], Usage], *, reported: bool = False) -> Callable[[], dict[str, float]]:
        def once() -> dict[str, float]:
            fill(client, count, "bench.rest", REST)
            usage = program()
            figures = {"seconds": usage.seconds, "over ideal": usage.seconds - ideal, "CPU s": usage.cpu}
            if reported:
                figures["over, run alone"] = json.loads(usage.output)["duration_seconds"] - ideal
            return figures

        return once

    ours = ("drain", "--concurrency", str(THREADS), "--report", "json")
    candidates = {
        f"loop, {THREADS} threads": measured(lambda: programs.by_hand("loop", str(THREADS))),
        OURS: measured(lambda: programs.taskbatch(*ours), reported=True),
    }
    title = f"{count:,} tasks of 10 ms, {THREADS} threads, {ideal:g} s at best, whole process"
    return Answer(title, f"loop, {THREADS} threads", "seconds", in_turn(candidates, rounds, warm_up=False))


def enqueue(programs: Programs, client: redis.Redis, rounds: int, count: int) -> Answer:
    """Ask how fast a producer is, imports left out."""

    def measured(program: Callable[[], Usage]) -> Callable[[], dict[str, float]]:
        def once() -> dict[str, float]:
            client.flushall()
            before = wire.look(client)
            seconds = float(program().output)
            used = wire.look(client).since(before)
            return {
                "tasks/s": count / seconds,
                "µs/task": seconds / count * 1e6,
                "commands/task": used.commands / count,
                "wire B/task": used.bytes / count,
            }

        return once

    words = (str(count), NOOP.decode())
    candidates = {
        "redis-py, LPUSH in pipelines": measured(lambda: programs.by_hand("enqueue_pipeline", *words)),
        f"{OURS}, enqueue_many": measured(lambda: programs.by_hand("enqueue_client", *words)),
    }
    title = f"{count:,} tasks enqueued, imports left out"
    return Answer(title, "redis-py, LPUSH in pipelines", "tasks/s", in_turn(candidates, rounds, warm_up=False))


def _process(usage: Usage) -> dict[str, float]:
    return {"ms": usage.seconds * 1000, "CPU ms": usage.cpu * 1000, "peak MiB": usage.peak}
