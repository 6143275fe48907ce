"""Checks of what a declaration may hold."""

from __future__ import annotations

import re
import sys
from typing import NoReturn

from taskbatch.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


def refuse(message: str) -> NoReturn:
    """Raise ConfigError with `message`, one line that says what to write instead."""
    raise ConfigError(message)


def check_name(what: str, name: object) -> None:
    """Raise ConfigError unless `name` can be the name of a job or a limit."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse(f"{what} {str(name)[:140]!r} is not valid: 1 to 128 of letters, digits and _ . : / -")


def is_positive(value: object) -> bool:
    """Return whether `value` is a finite number above 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def is_count(value: object) -> bool:
    """Return whether `value` is a whole number from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
