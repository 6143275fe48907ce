"""`taskbatch run` and `taskbatch drain`: one engine, other defaults."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from taskbatch.cli.failure import code_of, complain, explain, tell
from taskbatch.cli.leaving import leave_at_once, other_threads
from taskbatch.cli.options import run_options
from taskbatch.cli.progress import Progress
from taskbatch.cli.reporting import publish_report
from taskbatch.cli.session import Session
from taskbatch.cli.streams import take_stdout
from taskbatch.cli.verb import Verb, examples
from taskbatch.errors import ConfigError
from taskbatch.report import Report, Tally
from taskbatch.settings import RunSettings
from taskbatch.signals import Signals

if TYPE_CHECKING:
    from taskbatch.settings import PushSettings

LEFT_ALONE = {"stuck_thread", "signal", "max_runtime", "lease_lost", "redis_lost"}
"""After these, a job may still be inside its thread: whoever waits for it waits for ever."""


@click.command(
    "run",
    cls=Verb,
    epilog=examples(
        "taskbatch run",
        "taskbatch run -q mail -q reports -n 500 --max-runtime 50s",
        "taskbatch run --fail-on dead --report json",
    ),
)
@run_options(max_tasks="100", wait="1s", max_runtime="5m")
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - the options of run_options
    """Run one batch of tasks and exit: what cron, a CronJob or CI starts."""
    return _run(ctx, options)


@click.command(
    "drain",
    cls=Verb,
    epilog=examples(
        "taskbatch drain",
        "taskbatch drain -q reports -c 32 --max-runtime 1h",
        "taskbatch drain --wait-due 1m       (retries due within a minute, too)",
    ),
)
@run_options(max_tasks="none", wait="0s", max_runtime="none")
@click.pass_context
def drain(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - the options of run_options
    """Run tasks until the queue is empty: `run` without a bound, for people."""
    return _run(ctx, options)


def _run(ctx: click.Context, options: dict[str, Any]) -> int:
    session = ctx.ensure_object(Session)
    report_format = options.pop("report")
    if session.quiet and ctx.get_parameter_source("report") is click.core.ParameterSource.DEFAULT:
        report_format = "quiet"
    push = {name: options.pop(name) for name in ("pushgateway", "pushgateway_ca_file", "push_timeout", "textfile")}
    settings = _settings(session, options)
    # Before anything connects: as process 1 nothing else would make us notice a signal.
    signals = Signals()
    signals.install()
    result = take_stdout()
    started = time.time()
    try:
        report = _batch(session, settings, session.push_settings(*push.values()), signals)
    except click.UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - a report is owed in any case
        complain(session, error)
        report = _failed(session, settings, started, error)
    else:
        if report.error is not None:
            tell(session, report.error)
    publish_report(report, report_format, result, session.redact)
    if report.stop_reason in LEFT_ALONE and other_threads():
        leave_at_once(int(report.exit_code))
    return int(report.exit_code)


def _batch(session: Session, settings: RunSettings, push: PushSettings, signals: Signals) -> Report:
    progress = Progress(session.console, shown=session.log_format != "json" and not session.quiet)
    try:
        with session.redis() as redis:
            # Here, because redis-py costs 100 ms, and a wrong option should not.
            from taskbatch.batch import run_batch  # noqa: PLC0415
            from taskbatch.registry import load_jobs  # noqa: PLC0415

            return run_batch(
                settings,
                redis,
                push,
                lambda: load_jobs(session.jobs),
                signals=signals,
                on_progress=progress.show if progress.shown else None,
            )
    finally:
        progress.clear()


def _settings(session: Session, options: dict[str, Any]) -> RunSettings:
    options["max_concurrent_runs"] = options["max_concurrent_runs"] or 0
    try:
        settings = RunSettings(prefix=session.prefix, **options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    for queue in settings.queues:
        session.keys(queue)
    return settings


def _failed(session: Session, settings: RunSettings, started: float, error: Exception) -> Report:
    """Return the report of a run that did not come about."""
    return Report(
        run_id="",
        queues=settings.queues,
        stop_reason="error",
        started_at=started,
        duration=time.time() - started,
        tally=Tally(),
        remaining=None,
        next_due_at=None,
        pushed=None,
        error=session.redact(explain(error)),
        exit_code=code_of(error),
    )
