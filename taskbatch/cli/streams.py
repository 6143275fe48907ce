"""stdout and stderr that cannot fail: closed, full or broken, they lose output and nothing else.

A job prints, and so do we; neither may fail because whoever reads has left.
"""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK = 4096
"""A pipe that says it can be written to takes this many bytes without blocking (PIPE_BUF)."""


class Stream:
    """A descriptor, written to only while it is what it was: a job may close it, and a socket take its place."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._identity = _identity(descriptor)

    def write(self, data: bytes, patience: float | None = None) -> bool:
        """Write all of `data`, waiting for a slow reader at most `patience` seconds; whether it was all written."""
        until = None if patience is None else time.monotonic() + patience
        rest = memoryview(data)
        while rest:
            if self._identity is None or _identity(self._descriptor) != self._identity:
                return False
            try:
                if not _writable(self._descriptor, until):
                    return False
                rest = rest[os.write(self._descriptor, rest[:CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True


class Tolerant(io.RawIOBase):
    """What sys.stdout and sys.stderr are made of here: takes everything, and loses what cannot be written."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._is_socket = _is_socket(descriptor)
        self.name = name
        self.mode = "wb"

    def writable(self) -> bool:
        """Say yes."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, for programs that a job starts."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether a person sees it."""
        return is_terminal(self._descriptor)

    def write(self, data: Buffer, /) -> int:
        """Write `data`, or do not; its length is returned in any case."""
        # A job that closes its stdout makes room for a connection, which is no place for what it prints then.
        if self._is_socket or not _is_socket(self._descriptor):
            Stream(self._descriptor).write(bytes(data))
        return len(memoryview(data).cast("B"))


def secure() -> None:
    """Open what is closed of descriptors 0, 1 and 2, and put tolerant streams in the place of Python's."""
    for descriptor in (0, 1, 2):
        if _identity(descriptor) is None:
            # The lowest free one is what open() returns: this one.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _text_stream(1, "<stdout>", sys.stdout)
    sys.stderr = _text_stream(2, "<stderr>", sys.stderr)


def take_stdout() -> Stream:
    """Return what stdout was, for the result alone; whatever prints from now on prints to stderr."""
    flush()
    result = Stream(os.dup(1))
    os.dup2(2, 1)
    return result


def flush() -> None:
    """Write what is still buffered; a job may have closed or replaced the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112 - see above: there is nobody to tell
            continue


def is_terminal(descriptor: int) -> bool:
    """Return whether a person sees what is written there."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _text_stream(descriptor: int, name: str, old: object) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(Tolerant(descriptor, name)),
        encoding=getattr(old, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


def _identity(descriptor: int) -> tuple[int, int] | None:
    """Return what tells one open file from another; None if it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _writable(descriptor: int, until: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    left = None if until is None else max(0, int((until - time.monotonic()) * 1000))
    return bool(poll.poll(left))
