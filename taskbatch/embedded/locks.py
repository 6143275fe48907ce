"""Locks on files that the kernel releases when their holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

POLL = 0.003  # seconds between two looks at a lock or a socket that is about to change


def take(path: Path, within: float) -> int:
    """Lock a file for this process alone and return its descriptor; TimeoutError after `within` seconds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + within
    while not _locked(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            os.close(descriptor)
            message = f"{path} is held by another process"
            raise TimeoutError(message)
        time.sleep(POLL)
    return descriptor


def release(descriptor: int) -> None:
    """Unlock and close what `take` returned."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough if another thread has forked in between
    os.close(descriptor)


def is_taken(path: Path) -> bool:
    """Whether a process holds this lock now; no such file is no holder."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        # Shared: two who look at once do not take each other for a holder.
        return not _locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
