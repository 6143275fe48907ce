"""Jobs that tell what they should not: all that is secret in their environment, in as many ways as there are."""

from __future__ import annotations

import json
import logging
import os
from urllib.parse import quote

from taskbatch import Backoff, job

SECRET = ("PASSWORD", "URL", "TOKEN", "PUSHGATEWAY")


def secrets() -> dict[str, str]:
    """Return the variables that hold secrets, and what is in the files that others name."""
    found = {name: value for name, value in os.environ.items() if any(word in name for word in SECRET)}
    for name, path in list(found.items()):
        if name.endswith("_FILE"):
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                found[name] = file.read()
    return found


def told() -> dict[str, str]:
    """Return texts that hold them: plain, quoted by Python and by JSON, percent-encoded, and about to be cut off."""
    plain = " ".join(secrets().values())
    return {
        "plain": plain,
        "quoted": repr(secrets()),
        "json": json.dumps(secrets()),
        "encoded": quote(plain),
        "cut": "x" * 4080 + plain,
        "cut by the log": "x" * 15990 + plain,
    }


class TellingError(Exception):
    """Tells it in its repr, too."""

    def __repr__(self) -> str:
        return repr(secrets())


@job("tell", max_attempts=1)
def tell(payload: str) -> None:
    """Fail for good."""
    raise TellingError(told()[payload])


@job("tell.later", backoff=Backoff(base=3600.0))
def tell_later(payload: str) -> None:
    """Fail, with a cause."""
    try:
        raise KeyError(told()[payload])
    except KeyError as error:
        raise TellingError(payload) from error


@job("log")
def log(payload: str) -> None:
    """Log it."""
    logger = logging.getLogger("leaks")
    for level in (logging.DEBUG, logging.INFO, logging.ERROR):
        logger.log(level, "connecting to %s", told()[payload], extra={"dsn": told()[payload]})
    try:
        raise TellingError(told()[payload])
    except TellingError:
        logger.exception("failed")
