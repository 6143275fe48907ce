"""`taskbatch reap`: give back what crashed runs left behind, and nothing else."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import click

from taskbatch.cli.known import named_or_known
from taskbatch.cli.options import option, queues
from taskbatch.cli.session import Session, connected
from taskbatch.cli.text import number_of
from taskbatch.cli.types import Duration
from taskbatch.cli.verb import Verb, examples

if TYPE_CHECKING:
    from taskbatch.reaper import Reaped

log = logging.getLogger(__name__)

COUNTS = ("runs", "recovered", "suspects", "dead", "promoted")


@click.command(
    "reap",
    cls=Verb,
    epilog=examples(
        "taskbatch reap",
        "taskbatch reap -q mail --json",
    ),
)
@queues("Only these; repeatable.")
@option(
    "--lease", type=Duration(), default="60s", help="What a run without a lease is granted before it counts as crashed."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(session: Session, /, *, queues: tuple[str, ...], lease: float, as_json: bool) -> None:
    """Give back what crashed runs left behind, in all queues or in those named; promote what is due.

    Every run does this for its own queues. It is for a schedule beside an autoscaler, which sees only what is
    pending; it also looks for tasks of runs that left no trace of themselves but their lists.
    """
    for queue in queues:
        session.keys(queue)
    done = _reap(session, queues, lease)
    if as_json:
        found = {name: {count: getattr(one, count) for count in COUNTS} for name, one in done.items()}
        click.echo(json.dumps({"schema_version": 1, "queues": found}))
    elif not session.quiet:
        for name, one in done.items():
            click.echo(
                f"{name}: {number_of(one.runs, 'crashed run')}; {one.recovered} recovered, {one.suspects} suspects, "
                f"{one.dead} dead; {one.promoted} promoted"
            )


def _reap(session: Session, queues: tuple[str, ...], lease: float) -> dict[str, Reaped]:
    """Return what was done for each queue; nothing when Redis has been up for less than one lease."""
    with session.redis() as redis, connected(redis) as link:
        from taskbatch.queue import RunQueue  # noqa: PLC0415 - protobuf costs 20 ms, and --help should not
        from taskbatch.reaper import Reaper  # noqa: PLC0415 - as above
        from taskbatch.scripts import Scripts  # noqa: PLC0415 - as above
        from taskbatch.server import check_server  # noqa: PLC0415 - as above
        from taskbatch.sessions import new_run_id  # noqa: PLC0415 - as above

        server = check_server(link)
        if not server.may_be_reaped(lease, embedded=redis.embedded):
            log.warning("Redis is up for %.0f s, less than one lease: nothing is reaped yet", server.uptime)
            return {}
        scripts, run = Scripts(link), new_run_id()
        found = named_or_known(session, link, queues)
        return {keys.queue: Reaper(scripts, RunQueue(keys, run), lease).look(deep=True) for keys in found}
