"""Settings that may be secret: from a variable `NAME`, or from the file that `NAME_FILE` names."""

from __future__ import annotations

import os

import click

from taskbatch.errors import ConfigError

MAX_BYTES = 64 * 1024


def secret(name: str) -> str | None:
    """Return the secret `name`, None if it is not set or empty.

    Raises UsageError when it is set in both ways, ConfigError for a file that cannot be read.
    """
    value = os.environ.get(name) or None
    path = os.environ.get(f"{name}_FILE") or None
    if value and path:
        raise click.UsageError(f"{name} and {name}_FILE are both set; give one of them")
    return _read(f"{name}_FILE", path) if path else value


def _read(name: str, path: str) -> str | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs a run that finds nothing 11 ms
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: cannot read {path!r}: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{name}: {path!r} is too large for a secret")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        # The error itself would quote the content.
        raise ConfigError(f"{name}: {path!r} is not UTF-8") from None
    for end in ("\r\n", "\n"):
        if text.endswith(end):
            return text[: -len(end)] or None
    return text or None
