"""taskbatch: a single-shot batch consumer for Redis.

The public names are loaded when first asked for, so that a process pays only for what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskbatch.client import Client
    from taskbatch.declaration import Backoff, Job, RateLimit, job
    from taskbatch.task import Task

__version__ = "0.1.0"
__all__ = ["Backoff", "Client", "Job", "RateLimit", "Task", "__version__", "job"]

_HOMES = {
    "Backoff": "taskbatch.declaration",
    "Client": "taskbatch.client",
    "Job": "taskbatch.declaration",
    "RateLimit": "taskbatch.declaration",
    "Task": "taskbatch.task",
    "job": "taskbatch.declaration",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    if name not in _HOMES:
        msg = f"module 'taskbatch' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415 - the point of this function

    return getattr(import_module(_HOMES[name]), name)
