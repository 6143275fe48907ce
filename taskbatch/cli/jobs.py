"""`taskbatch jobs`: what would run, without running it."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from taskbatch.cli.text import duration, number_of, table
from taskbatch.cli.verb import VerbGroup, examples

if TYPE_CHECKING:
    from taskbatch.cli.session import Session
    from taskbatch.declaration import Job
    from taskbatch.registry import Registry


@click.group(
    "jobs",
    cls=VerbGroup,
    epilog=examples(
        "taskbatch jobs list",
        "taskbatch jobs check --jobs mycompany.jobs      (in a Dockerfile or in CI)",
    ),
)
def command() -> None:
    """List or check the jobs: those of --jobs, and those that installed packages bring."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def list_jobs(session: Session, /, *, as_json: bool) -> None:
    """List the jobs with their limits."""
    jobs = [job for _, job in sorted(_load(session).items())]
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "jobs": [*map(_as_dict, jobs)]}))
        return
    head = ["name", "module", "timeout", "attempts", "limit"]
    for line in table(
        head,
        [[job.name, _module(job), duration(job.timeout), str(job.max_attempts), _limit(job) or "-"] for job in jobs],
    ):
        click.echo(line)


@command.command("check")
@click.pass_obj
def check(session: Session) -> None:
    """Import the jobs; exit 0 if they are fine, 78 and a line that says why if not."""
    jobs = _load(session)
    if not session.quiet:
        click.echo(f"{number_of(len(jobs), 'job')}: {', '.join(sorted(jobs))}")


def _load(session: Session) -> Registry:
    from taskbatch.registry import load_jobs  # noqa: PLC0415 - and whatever the jobs import

    # What a module says when it does not import may quote the environment.
    session.learn_secrets()
    # A module may print while it is imported; what is printed here is for programs.
    with redirect_stdout(sys.stderr):
        return load_jobs(session.jobs)


def _as_dict(job: Job) -> dict[str, Any]:
    limit = job.rate_limit
    return {
        "name": job.name,
        "module": _module(job),
        "timeout_seconds": job.timeout,
        "max_attempts": job.max_attempts,
        "backoff": {"base_seconds": job.backoff.base, "maximum_seconds": job.backoff.maximum},
        "rate_limit": None
        if limit is None
        else {
            "name": job.limit_name,
            "limit": limit.limit,
            "period_seconds": limit.period,
            "algorithm": limit.algorithm,
            "burst": limit.burst,
            "per_key": limit.per_key,
        },
    }


def _module(job: Job) -> str:
    return str(getattr(job.function, "__module__", "?"))


def _limit(job: Job) -> str:
    limit = job.rate_limit
    if limit is None:
        return ""
    smooth = f" gcra, burst {limit.burst}" if limit.algorithm == "gcra" else ""
    shared = f", shared as {job.limit_name}" if job.limit_name != job.name else ""
    return f"{limit.rate}{smooth}{shared}"
