"""Answers as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measure import Samples
    from bench.questions import Answer


def as_text(answer: Answer) -> str:
    """Return a table with a column a candidate: medians with [lowest-highest]; the ratio is to the base."""
    figures = answer.figures
    base = figures[answer.base][answer.compared]
    columns = list(dict.fromkeys(what for one in figures.values() for what in one))
    rows = [
        ["", *figures],
        *([what, *(spread(one[what]) if what in one else "-" for one in figures.values())] for what in columns),
        [f"ratio of {answer.compared}", *(f"{one[answer.compared].ratio(base):.2f}" for one in figures.values())],
    ]
    return "\n".join([answer.question, *(f"  {line}" for line in aligned(rows)), ""])


def spread(samples: Samples) -> str:
    """Return `12.3 [11.9-14.0]`; only the median when all are the same."""
    median, low, high = (number(value) for value in (samples.median, samples.lowest, samples.highest))
    return median if low == high else f"{median} [{low}-{high}]"


def number(value: float) -> str:
    """Return three significant digits, or whole numbers with commas."""
    if abs(value) >= 100:  # noqa: PLR2004 - from here on there is nothing behind the point
        return f"{value:,.0f}"
    return f"{value:.3g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with columns below each other, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def as_dict(answer: Answer) -> dict[str, Any]:
    """Return everything, each single value included."""
    base = answer.figures[answer.base][answer.compared]
    return {
        "question": answer.question,
        "base": answer.base,
        "compared": answer.compared,
        "candidates": {
            name: {
                "ratio": figures[answer.compared].ratio(base),
                "figures": {
                    what: {"median": samples.median, "values": samples.values} for what, samples in figures.items()
                },
            }
            for name, figures in answer.figures.items()
        },
    }
