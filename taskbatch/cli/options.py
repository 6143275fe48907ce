"""Options that several verbs share, each with its variable: `--max-tasks` is `TASKBATCH_MAX_TASKS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from taskbatch.cli.types import Count, Duration, Given, Listed

if TYPE_CHECKING:
    from collections.abc import Callable

REPORTS = ("text", "json", "github", "none")

F = TypeVar("F", bound="Callable[..., Any]")


def option(name: str, *more: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401 - click's
    """Declare an option that its variable sets, too."""
    return click.option(name, *more, envvar=variable(name), show_envvar=True, **settings)


def variable(name: str) -> str:
    """Return the variable of an option."""
    return "TASKBATCH_" + name.lstrip("-").replace("-", "_").upper()


def combined(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several, in the order they are to be listed."""

    def apply(function: F) -> F:
        for one in reversed(options):
            function = one(function)
        return function

    return apply


def queues(help_text: str, *, default: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Declare `--queue`, repeatable; commas separate, too, since no name can hold one."""
    return option(
        "--queue",
        "-q",
        "queues",
        multiple=True,
        type=Listed("name"),
        default=default,
        help=help_text,
        callback=lambda _ctx, _param, value: tuple(
            part for one in value for part in Listed("").split_envvar_value(one)
        ),
    )


def queue() -> Callable[[F], F]:
    """Declare `--queue` for a verb that works on one."""
    return option("--queue", "-q", default="default", type=Given("name"), help="The queue.")


def run_options(*, max_tasks: str, wait: str, max_runtime: str) -> Callable[[F], F]:
    """Declare the options of a run; the three defaults tell `run` from `drain`."""
    number, span, fail_on = Count(1, optional=True), Duration(optional=True), click.Choice(["never", "dead", "failed"])
    return combined(
        queues("Where tasks come from; repeatable.", default=("default",)),
        option("--max-tasks", "-n", type=number, default=max_tasks, help="Tasks to start at most, or none."),
        option("--concurrency", "-c", type=Count(1), default="8", help="Jobs at a time."),
        option("--wait", type=Duration(), default=wait, help="How long to wait for new work when there is none."),
        option("--wait-due", type=Duration(), default="0s", help="Wait for retries and limited tasks due that soon."),
        option("--max-runtime", type=span, default=max_runtime, help="When to stop claiming, or none."),
        option("--lease", type=Duration(), default="60s", help="Without a sign of life, others take over after it."),
        option("--grace", type=Duration(), default="20s", help="How long jobs may go on when the run has to stop."),
        option("--max-concurrent-runs", type=number, default="none", help="Do nothing if that many run already."),
        option("--fail-on", type=fail_on, default="never", help="Exit 1 after a dead letter, or any failed attempt."),
        option("--remaining-exit-code", type=Count(0), default="0", help="Exit code when claimable tasks remain."),
        push_options(),
        option("--report", type=click.Choice(REPORTS), default="text", help="What to print at the end."),
    )


def push_options() -> Callable[[F], F]:
    """Declare where metrics go."""
    return combined(
        # Not by click: the variable may be given as a file, too.
        click.option(
            "--pushgateway",
            metavar="URL",
            type=Given("url"),
            help="Push metrics there. [env var: TASKBATCH_PUSHGATEWAY; login: TASKBATCH_PUSHGATEWAY_USER and "
            "TASKBATCH_PUSHGATEWAY_PASSWORD, or TASKBATCH_PUSHGATEWAY_TOKEN; each also NAME_FILE]",
        ),
        option("--pushgateway-ca-file", metavar="PATH", type=Given("path"), help="Whom to trust for https."),
        option("--push-timeout", type=Duration(), default="5s", help="For the whole push."),
        option("--textfile", metavar="PATH", type=Given("path"), help="Write metrics there, for node exporter."),
    )
