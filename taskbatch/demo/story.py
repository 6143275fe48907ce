"""The demo from its first act to its last. Everything that matters is done by commands a person could type."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from taskbatch.client import Client
from taskbatch.connect import Link
from taskbatch.demo.load import FILES, GARBAGE, ORDERS, Called, Typed
from taskbatch.demo.promises import KILLED, OUTCOMES, End, Letter, Promise, outcome_rows, promises
from taskbatch.keys import Keys
from taskbatch.letters import Letters
from taskbatch.scripts import Scripts
from taskbatch.settings import RedisSettings
from taskbatch.survey import survey

if TYPE_CHECKING:
    from taskbatch.demo.stage import Stage

KEYS = Keys("taskbatch", "default")
LEASE = "3s"
SLACK = 0.2
"""Seconds waited beyond the end of a lease: it is over only after its last millisecond."""


def play(stage: Stage) -> list[Promise]:
    """Play it all, about 10 seconds, and return what was promised. Raises what a link raises."""
    link = Link(RedisSettings(url=stage.socket_url))
    link.connect()
    try:
        _introduce(stage)
        _enqueue(stage, link)
        exit_codes = (_first_run(stage, link), _second_run(stage), _drain(stage))
        _look(stage)
        return _sum_up(stage, _end(link, exit_codes))
    finally:
        link.close()


def _introduce(stage: Stage) -> None:
    voice = stage.voice
    voice.title("A Valkey server of its own, in a temporary directory")
    voice.say("Your own Redis is not touched. All commands below are real; these two variables lead them here:")
    for name, value in stage.settings.items():
        voice.command(f"export {name}={shlex.quote(value)}")


def _enqueue(stage: Stage, link: Link) -> None:
    stage.voice.title("1. Tasks of every kind go into the queue")
    for name, text in FILES.items():
        (stage.directory / name).write_text(text)
    with Client(stage.socket_url) as client:
        for order in ORDERS:
            stage.voice.say(f"{order.says}:")
            match order:
                case Typed(_, words, reads):
                    stage.perform("enqueue", *words, reads=reads)
                case Called(_, kind, payload):
                    stage.voice.command(f"client.enqueue({kind!r}, {payload!r})", prompt=">>>")
                    client.enqueue(kind, payload)
    stage.voice.say("and some bytes that are no task, from a producer that has lost its way:")
    stage.voice.command(f"redis-cli LPUSH {shlex.quote(KEYS.pending)} {shlex.quote(GARBAGE.decode())}")
    link.call("LPUSH", KEYS.pending, GARBAGE)


def _first_run(stage: Stage, link: Link) -> int:
    voice = stage.voice
    voice.title("2. A run, as cron would start it; one of its tasks kills it with SIGKILL")
    code = stage.perform("run", "--wait", "0s", "--lease", LEASE)
    now = survey(link, KEYS)
    voice.say(
        f"{'Killed' if code == KILLED else f'Exit code {code}'}: no report, no good-bye. "
        f"It still holds {now.processing} of its tasks; what it had settled before is settled."
    )
    rest = max((run.expires_ms - now.now_ms for run in now.runs), default=0) / 1000 + SLACK
    voice.say(f"Its lease has to end first; that takes another {rest:.1f} s.")
    time.sleep(max(0.0, rest))
    return code


def _second_run(stage: Stage) -> int:
    stage.voice.title("3. The next run reaps: it takes back what the dead one held, then works")
    return stage.perform("run", "--wait", "0s", "--lease", LEASE)


def _drain(stage: Stage) -> int:
    stage.voice.title("4. Drain the queue, and wait for retries and limited calls due within 5 s")
    return stage.perform("drain", "--wait-due", "5s", "--lease", LEASE)


def _look(stage: Stage) -> None:
    stage.voice.title("5. What is left")
    stage.perform("status")


def _end(link: Link, exit_codes: tuple[int, ...]) -> End:
    found = survey(link, KEYS)
    letters = tuple(
        Letter(one.task.type if one.task is not None else "?", one.reason, one.error)
        for one in Letters(Scripts(link), KEYS)
    )
    return End(exit_codes, found.totals, found.states, letters)


def _sum_up(stage: Stage, end: End) -> list[Promise]:
    voice = stage.voice
    voice.title("What happened")
    outcomes = "  {:<14}" + "{:>11}" * len(OUTCOMES)
    for row in (("type", *OUTCOMES), *outcome_rows(end)):
        voice.line(outcomes.format(*row))
    voice.line()
    for letter in (Letter("dead letter", "reason", "error"), *end.letters):
        voice.line(f"  {letter.kind:<14}  {letter.reason:<11}  {letter.error[:49]}")
    voice.title("What was promised")
    told = promises(end)
    for promise in told:
        voice.verdict(promise.text, kept=promise.kept)
    return told
