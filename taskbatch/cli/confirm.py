"""Asking before something is deleted for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from taskbatch.cli.streams import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def yes_option() -> Callable[[Any], Any]:
    """Declare `--yes`."""
    return click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool) -> None:
    """Return if a person agrees or has agreed; Abort if not, UsageError where nobody can be asked."""
    if yes:
        return
    if not is_terminal(0):
        raise click.UsageError("this deletes tasks for good: say --yes")
    click.confirm(question, abort=True, err=True)
