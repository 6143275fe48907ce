"""`taskbatch queue`: pause, resume, limit, purge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from taskbatch.cli.confirm import confirm, yes_option
from taskbatch.cli.limits import shown_limit, stored_limit
from taskbatch.cli.options import queue
from taskbatch.cli.text import number_of
from taskbatch.cli.types import Duration, Given
from taskbatch.cli.verb import VerbGroup, examples
from taskbatch.logs import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.cli.session import Session

STATES = ("pending", "recovered", "suspects", "scheduled", "dead")


@click.group(
    "queue",
    cls=VerbGroup,
    epilog=examples(
        'taskbatch queue pause "database upgrade" --for 30m',
        "taskbatch queue limit 50/1s -q mail",
        "taskbatch queue purge --state scheduled --yes",
    ),
)
def command() -> None:
    """Pause, resume, limit or purge a queue; runs see it at their next claim."""


@command.command("pause")
@click.argument("reason", type=Given("reason"))
@click.option("--for", "span", type=Duration(), show_default="until resume", help="Go on by itself after this time.")
@queue()
@click.pass_obj
def pause(session: Session, reason: str, span: float | None, queue: str) -> None:
    """Let nothing more be claimed; what runs goes on."""
    milliseconds = 0 if span is None else max(1, round(span * 1000))
    _call(session, queue, "pause", ["paused"], [reason, milliseconds])
    _say(session, f"{queue} is paused: {escape(reason)}")


@command.command("resume")
@queue()
@click.pass_obj
def resume(session: Session, queue: str) -> None:
    """Let tasks be claimed again."""
    was_paused = _call(session, queue, "pause", ["paused"], ["", 0])
    _say(session, f"{queue} goes on" if was_paused else f"{queue} was not paused")


@command.command(
    "limit",
    epilog=examples(
        "taskbatch queue limit 50/1s -q mail",
        "taskbatch queue limit none -q mail",
        "taskbatch queue limit",
    ),
)
@click.argument("rate", required=False)
@queue()
@click.pass_obj
def limit(session: Session, /, rate: str | None, queue: str) -> None:
    """Limit how many tasks all runs together claim: RATE is 50/1s or none; without it, show it."""
    if rate is None:
        keys = session.keys(queue)
        with session.link() as link:
            stored = link.call("HGET", keys.config, "limit")
        click.echo("none" if stored is None else shown_limit(stored.decode("utf-8", "replace")))
        return
    stored_rate = stored_limit(rate)
    _call(session, queue, "limit_queue", ["config", "limit"], [stored_rate])
    _say(session, f"{queue} has no limit" if not stored_rate else f"{queue} is limited to {shown_limit(stored_rate)}")


@command.command(
    "purge",
    epilog=examples(
        "taskbatch queue purge -q scratch",
        "taskbatch queue purge --state dead --yes",
    ),
)
@click.option("--state", type=click.Choice(STATES), default="pending", help="Which tasks.")
@yes_option()
@queue()
@click.pass_obj
def purge(session: Session, /, *, state: str, yes: bool, queue: str) -> None:
    """Delete all tasks of one state for good."""
    session.keys(queue)
    confirm(f"Delete all {state} tasks of queue {queue}?", yes=yes)
    deleted = _call(session, queue, "purge", [state, "totals"], [])
    _say(session, f"{number_of(deleted, 'task')} deleted")


def _call(session: Session, queue: str, script: str, keys: Sequence[str], args: Sequence[str | int]) -> int:
    """Call a script with these keys of the queue."""
    known = session.keys(queue)
    with session.link() as link:
        from taskbatch.scripts import Scripts  # noqa: PLC0415 - redis-py costs 100 ms, and --help should not

        return int(Scripts(link).call(script, [getattr(known, name) for name in keys], args))


def _say(session: Session, text: str) -> None:
    if not session.quiet:
        click.echo(text)
