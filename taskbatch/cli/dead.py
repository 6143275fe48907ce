"""`taskbatch dead`: look at dead letters, put them back, delete them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from taskbatch.cli.confirm import confirm, yes_option
from taskbatch.cli.failure import FailedError
from taskbatch.cli.letter import as_dict, as_table, as_text
from taskbatch.cli.options import queue
from taskbatch.cli.text import number_of
from taskbatch.cli.types import Count
from taskbatch.cli.verb import VerbGroup, examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskbatch.cli.session import Session
    from taskbatch.letters import Letter, Letters

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
all_option = click.option("--all", "everything", is_flag=True, help="All that are there now.")
ids_argument = click.argument("ids", nargs=-1, metavar="[ID]...")


@click.group(
    "dead",
    cls=VerbGroup,
    epilog=examples(
        "taskbatch dead list -q mail",
        "taskbatch dead show 1733072400000-0",
        "taskbatch dead redrive --all",
        "taskbatch dead delete 1733072400000-0",
    ),
)
def command() -> None:
    """Look at dead letters, redrive or delete them. An ID is that of the entry or of the task."""


@command.command("list")
@queue()
@click.option("--limit", "-n", type=Count(1), default="20", help="How many at most, the newest first.")
@as_json_option
@click.pass_obj
def list_letters(session: Session, /, *, queue: str, limit: int, as_json: bool) -> None:
    """List dead letters, the newest first."""
    with _letters(session, queue) as letters:
        found, count = letters.newest(limit), letters.count()
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "queue": queue, "count": count, "dead": [*map(as_dict, found)]}))
        return
    for line in as_table(found) if found else ["no dead letters"]:
        click.echo(line)
    if count > len(found) and not session.quiet:
        click.echo(f"({count} in all; --limit shows more)", err=True)


@command.command("show")
@click.argument("name", metavar="ID")
@queue()
@as_json_option
@click.pass_obj
def show(session: Session, /, *, name: str, queue: str, as_json: bool) -> None:
    """Show all of one dead letter; its payload too, so mind who is looking."""
    with _letters(session, queue) as letters:
        found = _found(letters, [name], queue)
    for letter in found:
        click.echo(json.dumps(as_dict(letter, whole=True)) if as_json else as_text(letter))


@command.command("redrive")
@ids_argument
@all_option
@queue()
@click.pass_obj
def redrive(session: Session, /, *, ids: tuple[str, ...], everything: bool, queue: str) -> None:
    """Put dead letters back into the queue, behind what waits there, their counters at zero."""
    _check(ids, everything=everything)
    with _letters(session, queue) as letters:
        done = letters.redrive_all() if everything else letters.redrive(_found(letters, ids, queue))
    if not session.quiet:
        click.echo(f"{number_of(done, 'task')} redriven")


@command.command("delete")
@ids_argument
@all_option
@yes_option()
@queue()
@click.pass_obj
def delete(session: Session, /, *, ids: tuple[str, ...], everything: bool, yes: bool, queue: str) -> None:
    """Delete dead letters for good."""
    _check(ids, everything=everything)
    session.keys(queue)
    what = "all dead letters" if everything else number_of(len(ids), "dead letter")
    confirm(f"Delete {what} of queue {queue}?", yes=yes)
    with _letters(session, queue) as letters:
        done = letters.discard_all() if everything else letters.discard(_found(letters, ids, queue))
    if not session.quiet:
        click.echo(f"{number_of(done, 'dead letter')} deleted")


def _check(ids: Sequence[str], *, everything: bool) -> None:
    if everything == bool(ids):
        raise click.UsageError("name dead letters by their ID, or say --all")


@contextmanager
def _letters(session: Session, queue: str) -> Iterator[Letters]:
    keys = session.keys(queue)
    with session.link() as link:
        from taskbatch.letters import Letters  # noqa: PLC0415 - redis-py costs 100 ms, and --help should not
        from taskbatch.scripts import Scripts  # noqa: PLC0415 - as above

        yield Letters(Scripts(link), keys)


def _found(letters: Letters, ids: Sequence[str], queue: str) -> list[Letter]:
    """Return them all, each once; FailedError, before anything is done, if one is not there."""
    found: dict[str, Letter] = {}
    for name in ids:
        matching = letters.find(name)
        if not matching:
            raise FailedError(f"no dead letter {name!r} in queue {queue}")
        found |= {letter.entry: letter for letter in matching}
    return list(found.values())
