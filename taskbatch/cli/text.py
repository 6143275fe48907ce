"""Small texts for people: tables, durations, ages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned lines; columns of numbers are aligned to the right."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [bool(rows) and all(cell.isdigit() or cell == "-" for cell in column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    return [line(head), *map(line, rows)]


def duration(seconds: float) -> str:
    """Return a span as people say it: `350ms`, `4.2s`, `3m 10s`, `2d 4h`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f}s".replace(".0s", "s")
    left, parts = round(seconds), []
    for size, unit in (*_UNITS, (1, "s")):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(parts[:2])


def number_of(count: int, what: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
