"""`report.summarise`: read a CSV file, write totals by group as JSON beside it.

At least once: running twice reads the same file and writes the same report. The report is written under
another name and moved into place in one step, so a reader never sees half of one, and two runs at once
do not mix theirs.

    taskbatch enqueue report.summarise '{"source": "sales.csv", "group": "region", "sum": "amount"}'

Files are below the directory in REPORT_ROOT (the current one by default); a payload cannot leave it.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from taskbatch import job


@dataclass(frozen=True)
class Report:
    """The CSV file below REPORT_ROOT, the column to group by and the column to add up."""

    source: str
    group: str
    sum: str


@job("report.summarise", timeout=300)
def summarise(report: Report) -> None:
    """Write `<source>.summary.json`: for each group the number of rows and the sum."""
    root = Path(os.environ.get("REPORT_ROOT", ".")).resolve()
    source = (root / report.source).resolve()
    if not source.is_relative_to(root):
        msg = f"{report.source} is outside of {root}"
        raise PermissionError(msg)

    totals: dict[str, tuple[int, Decimal]] = {}
    with source.open(newline="", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            count, total = totals.get(row[report.group], (0, Decimal(0)))
            totals[row[report.group]] = count + 1, total + Decimal(row[report.sum])

    summary = {group: {"rows": count, "sum": str(total)} for group, (count, total) in sorted(totals.items())}
    replace(source.with_name(f"{source.name}.summary.json"), json.dumps(summary, indent=2) + "\n", source)


def replace(target: Path, text: str, like: Path) -> None:
    """Put `text` into `target` in one step, also if we crash; who may read `like` may read it."""
    with tempfile.NamedTemporaryFile("w", dir=target.parent, encoding="utf-8", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            shutil.copymode(like, file.name)
            Path(file.name).replace(target)
        except BaseException:  # the timeout too, which is no Exception
            Path(file.name).unlink(missing_ok=True)
            raise
