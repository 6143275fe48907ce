"""The report of a run, in the form that was asked for."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from taskbatch.cli.text import duration, number_of, table
from taskbatch.logs import escape
from taskbatch.report import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.cli.streams import Stream
    from taskbatch.report import Report

PATIENCE = 1.5
"""Seconds the report waits for a reader that has stopped reading: the process has to end."""

MEANINGS = {
    "empty": "nothing left to claim",
    "max_tasks": "--max-tasks was reached",
    "max_runtime": "--max-runtime was reached",
    "signal": "it was told to stop",
    "paused": "the queue is paused",
    "overlap": "as many runs as allowed are at work already",
    "lease_lost": "its lease was lost",
    "redis_lost": "Redis was lost",
    "stuck_thread": "a job does not end",
    "error": "it failed",
}
MAX_SUMMARY = 60_000
"""Most characters of a job summary; GitHub takes a megabyte of all steps together."""


def publish_report(report: Report, form: str, result: Stream, redact: Callable[[str], str]) -> None:
    """Print the report. `form`: text, json, github, none, or quiet: text if the exit code is not 0."""
    if form == "json":
        result.write(json.dumps(_redacted(report.as_dict(), redact)).encode() + b"\n", PATIENCE)
    elif form == "text" or (form == "quiet" and report.exit_code):
        result.write(as_text(report, redact).encode("utf-8", "backslashreplace"), PATIENCE)
    elif form == "github":
        _to_github(as_markdown(report, redact)[:MAX_SUMMARY], result)


def as_text(report: Report, redact: Callable[[str], str] = str) -> str:
    """Return the report for people: a line of outcomes, a table of types, what is left, what died."""

    def shown(text: str) -> str:
        return escape(redact(text))

    tally = report.tally
    head = f"run {report.run_id or '-'} on {', '.join(report.queues)}: {_ended(report)}"
    counts = [f"{tally.outcomes[name]} {name}" for name in OUTCOMES if tally.outcomes[name]]
    lines = [head, f"  claimed {tally.claimed}" + (f": {', '.join(counts)}" if counts else "")]
    if tally.reaped:
        lines.append(f"  reaped {number_of(tally.reaped, 'task')} of crashed runs")
    if len(tally.by_type) > 1:
        rows = [
            [shown(kind), *(str(counts[name]) for name in OUTCOMES)] for kind, counts in sorted(tally.by_type.items())
        ]
        lines += [f"  {line}" for line in table(["type", *OUTCOMES], rows)]
    if report.remaining is not None:
        left = {name: getattr(report.remaining, name) for name in _PLACES}
        lines.append("  left: " + (", ".join(f"{count} {name}" for name, count in left.items() if count) or "nothing"))
    for letter in tally.dead_letters:
        lines.append(f"  dead: {shown(letter['id'] or '-')} ({shown(letter['type'] or '?')}) {letter['reason']}: "
                     f"{shown(letter['error'])[:200]}")  # fmt: skip
    if report.pushed is False:
        lines.append("  metrics were not pushed")
    return "\n".join(lines) + "\n"


_PLACES = ("pending", "recovered", "suspects", "scheduled", "processing")


def as_markdown(report: Report, redact: Callable[[str], str] = str) -> str:
    """Return the report as a job summary of GitHub; whatever comes from tasks is in code spans."""
    tally = report.tally
    sign = "✅" if report.exit_code == 0 else "❌"
    lines = [
        f"### {sign} taskbatch: {_markdown(', '.join(report.queues))}",
        "",
        f"{_ended(report)} `{report.run_id or '-'}`",
        "",
    ]
    if report.error:
        lines += [f"**{_markdown(redact(report.error))}**", ""]
    lines += [_row(["type", *OUTCOMES]), _row(["---"] * (1 + len(OUTCOMES)))]
    lines += [
        _row([_markdown(redact(kind)), *(str(n[name]) for name in OUTCOMES)])
        for kind, n in sorted(tally.by_type.items())
    ]
    lines += [_row(["**all**", *(str(tally.outcomes[name]) for name in OUTCOMES)]), ""]
    if tally.dead_letters:
        lines += [_row(["dead letter", "type", "reason", "error"]), _row(["---"] * 4)]
        lines += [_row([_markdown(redact(letter[name])[:200]) for name in ("id", "type", "reason", "error")])
                  for letter in tally.dead_letters]  # fmt: skip
        lines.append("")
    if report.remaining is not None:
        lines.append("Left: " + ", ".join(f"{getattr(report.remaining, name)} {name}" for name in _PLACES))
    return "\n".join(lines) + "\n"


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:  # noqa: ANN401 - whatever JSON can hold
    match value:
        case str():
            return redact(value)
        case list():
            return [_redacted(one, redact) for one in value]
        case dict():
            return {name: _redacted(one, redact) for name, one in value.items()}
    return value


def _ended(report: Report) -> str:
    code = f", exit code {int(report.exit_code)}" if report.exit_code else ""
    return f"{report.stop_reason} ({MEANINGS[report.stop_reason]}) after {duration(report.duration)}{code}"


def _row(cells: list[Any]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    """Return `text` as a code span that nothing can break out of, inside a table."""
    inner = escape(text).replace("`", "'").replace("|", "\\|")
    return f"`{inner}`" if inner else ""


def _to_github(text: str, result: Stream) -> None:
    """Append to the summary of the step; where there is none, print."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    try:
        if path:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123 - as elsewhere
                file.write(text)
            return
    except OSError:
        # Whatever becomes of the summary, the run is what it is.
        pass
    result.write(text.encode("utf-8", "backslashreplace"), PATIENCE)
