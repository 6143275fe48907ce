"""Kinds of values on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from taskbatch.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    # Generic for type checkers of click 8.2 and later only.
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType

NONE = "none"
"""What a person writes for a bound that is not there."""


class Duration(ParamType):
    """`30s` → 30.0; with `optional` also `none` → None."""

    name = "duration"

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:  # noqa: ANN401 - click's
        """Return the seconds."""
        if isinstance(value, float):
            return value
        if self._optional and value == NONE:
            return None
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Count(ParamType):
    """A whole number from `least`; with `optional` also `none` → None."""

    name = "number"

    def __init__(self, least: int, *, optional: bool = False) -> None:
        self._least = least
        self._optional = optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:  # noqa: ANN401 - click's
        """Return the number."""
        if isinstance(value, int):
            return value
        if self._optional and value == NONE:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 10 and int(value) >= self._least):  # noqa: PLR2004 - digits
            or_none = f", or {NONE}" if self._optional else ""
            self.fail(f"{value[:40]!r} is not a whole number from {self._least}{or_none}.", param, ctx)
        return int(value)


class Listed(ParamType):
    """One of several: an option given more than once, or a variable with commas in between."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """Return it as it is."""
        if not value:
            self.fail("must not be empty.", param, ctx)
        return str(value)

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """Return the parts; spaces around them do not count."""
        return [part.strip() for part in rv.split(",") if part.strip()]


class Given(ParamType):
    """A text that is not empty: an empty one is a variable somebody forgot to set."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """Return it as it is."""
        if not value:
            self.fail("must not be empty.", param, ctx)
        return str(value)
