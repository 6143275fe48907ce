"""What can go wrong that a caller must know about, and the exit code it ends in."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit codes of the command line; a public contract (sysexits.h gives 69, 70, 75 and 78 their meaning)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 69
    INTERNAL = 70
    INTERRUPTED = 75
    CONFIG = 78


class TaskbatchError(Exception):
    """Base of every error taskbatch raises on purpose; its text is one clear line."""


class ConfigError(TaskbatchError):
    """Something a person has to change: jobs, server, permission, key type. Ends in exit code 78."""


class UnreachableError(TaskbatchError):
    """Redis could not be reached and nothing was done. Ends in exit code 69."""


class DoubtError(TaskbatchError):
    """A command was sent and its reply was lost: whether it had an effect is not known."""


class RefusedError(TaskbatchError):
    """Redis answered with an error and did nothing (out of memory, read-only, busy, loading)."""


REDIS_TROUBLE = (UnreachableError, DoubtError, RefusedError)
"""What passes by itself, or shows soon that it does not."""


class PayloadTooLargeError(TaskbatchError, ValueError):
    """A task is larger than the cap; nothing was enqueued."""
