"""The program: global options, and verbs that are loaded when they are called."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from taskbatch.cli.failure import MEANINGS, complain
from taskbatch.cli.session import Session
from taskbatch.cli.verb import VerbGroup, examples, global_options

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = {
    "enqueue": ("taskbatch.cli.enqueue:command", "Put tasks into a queue."),
    "run": ("taskbatch.cli.run:run", "Run one batch of tasks: what a scheduler starts."),
    "drain": ("taskbatch.cli.run:drain", "Run tasks until the queue is empty."),
    "reap": ("taskbatch.cli.reap:command", "Give back what crashed runs left behind."),
    "status": ("taskbatch.cli.status:command", "Show what the queues hold."),
    "dead": ("taskbatch.cli.dead:command", "Look at dead letters, redrive or delete them."),
    "queue": ("taskbatch.cli.queue:command", "Pause, resume, limit or purge a queue."),
    "metrics": ("taskbatch.cli.metrics:command", "Print the metrics, or push them."),
    "jobs": ("taskbatch.cli.jobs:command", "List or check the jobs."),
    "demo": ("taskbatch.cli.demo:command", "See it work, on an embedded server."),
}
"""Each verb with where it is, and its line in the help."""


class Program(VerbGroup):
    """The top of the command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the verbs in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Load a verb."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the verbs without loading them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value:
        from taskbatch import __version__  # noqa: PLC0415 - only here

        click.echo(f"taskbatch {__version__}")
        ctx.exit()


program = Program(
    "taskbatch",
    help="A single-shot batch consumer for Redis: claim tasks, run them, settle them, report, exit.",
    epilog="\n\n".join(
        [
            examples(
                'taskbatch enqueue email.send \'{"to": "a@example.org"}\'',
                "taskbatch run --queue mail --max-tasks 100",
                "taskbatch --redis-url embedded: status",
            ),
            "\n".join(["\b", "Exit codes:", *(f"  {code.value:<3} {what}" for code, what in MEANINGS.items())]),
            "Global options may also stand after the verb; `taskbatch VERB --help` tells more.",
        ]
    ),
    subcommand_metavar="VERB [ARGS]...",
    no_args_is_help=False,
    params=[
        *global_options(hidden=False),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version.",
        ),
    ],
)


def run(arguments: Sequence[str], session: Session | None = None) -> int:
    """Run one command and return its exit code. Prints what went wrong; never raises an Exception."""
    session = session or Session()
    if wanted := os.environ.get("_TASKBATCH_COMPLETE"):
        from click.shell_completion import shell_complete  # noqa: PLC0415 - only for a shell that asks

        return shell_complete(program, {}, "taskbatch", "_TASKBATCH_COMPLETE", wanted)
    try:
        with program.make_context("taskbatch", list(arguments), obj=session) as context:
            result: Any = program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException as error:  # noqa: BLE001 - the one place where everything ends
        return complain(session, error)
    return int(result or 0)
