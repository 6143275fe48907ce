"""`taskbatch status`: what the queues hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from taskbatch.cli.known import named_or_known
from taskbatch.cli.limits import shown_limit
from taskbatch.cli.options import queues
from taskbatch.cli.text import duration, number_of, table
from taskbatch.cli.verb import Verb, examples
from taskbatch.logs import escape
from taskbatch.report import rfc3339

if TYPE_CHECKING:
    from taskbatch.cli.session import Session
    from taskbatch.survey import Survey

HEAD = ["queue", "pending", "recovered", "suspects", "processing", "scheduled", "dead", "oldest", "next due", "notes"]


@click.command(
    "status",
    cls=Verb,
    epilog=examples(
        "taskbatch status",
        "taskbatch status -q mail --json",
    ),
)
@queues("Show only these; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(session: Session, /, *, queues: tuple[str, ...], as_json: bool) -> None:
    """Show what the queues hold: all that were ever used, or those named."""
    for queue in queues:
        session.keys(queue)
    with session.link() as link:
        from taskbatch.survey import survey  # noqa: PLC0415 - redis-py costs 100 ms, and --help should not

        found = [survey(link, keys) for keys in named_or_known(session, link, queues)]
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "queues": [as_dict(one) for one in found]}))
    elif not found:
        click.echo("no queues yet")
    else:
        click.echo("\n".join(as_table(found)))


def as_table(found: list[Survey]) -> list[str]:
    """Return a line for each queue; spans are seen from the clock of Redis."""
    return table(HEAD, [_row(one) for one in found])


def as_dict(one: Survey) -> dict[str, Any]:
    """Return a queue as `--json` prints it. Times are RFC 3339."""
    return {
        "queue": one.queue,
        "time": _time(one.now_ms),
        **one.states,
        "reapable": one.reapable,
        "oldest_pending_at": _time(one.oldest_pending_ms),
        "next_due_at": _time(one.next_due_ms),
        "paused": one.paused,
        "paused_until": None if one.paused_for_ms is None else _time(one.now_ms + one.paused_for_ms),
        "limit": None if one.limit is None else shown_limit(one.limit),
        "runs": [
            {"run": run.run, "lease_until": _time(run.expires_ms), "live": run.live(one.now_ms), "held": run.held}
            for run in one.runs
        ],
    }


def _row(one: Survey) -> list[str]:
    counts = [str(count) for count in one.states.values()]
    oldest = "-" if one.oldest_pending_ms is None else duration(max(0, one.now_ms - one.oldest_pending_ms) / 1000)
    return [one.queue, *counts, oldest, _due(one), "; ".join(_notes(one))]


def _due(one: Survey) -> str:
    if one.next_due_ms is None:
        return "-"
    seconds = (one.next_due_ms - one.now_ms) / 1000
    return "now" if seconds <= 0 else f"in {duration(seconds)}"


def _notes(one: Survey) -> list[str]:
    notes = []
    if one.paused is not None:
        span = "" if one.paused_for_ms is None else f" for {duration(one.paused_for_ms / 1000)}"
        notes.append(f"paused{span}: {escape(one.paused)[:60]}")
    if one.limit is not None:
        notes.append(f"limit {shown_limit(one.limit)}")
    if live := sum(run.live(one.now_ms) for run in one.runs):
        notes.append(number_of(live, "run"))
    if gone := len(one.runs) - live:
        notes.append(f"{number_of(gone, 'crashed run')}, {number_of(one.reapable, 'task')} to reap")
    return notes


def _time(ms: int | None) -> str | None:
    """Return Unix ms as text; None for none, and for what no calendar holds."""
    try:
        return None if ms is None else rfc3339(ms / 1000)
    except (ValueError, OverflowError, OSError):
        return None
