"""The metrics as a file for node exporter's textfile collector."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from taskbatch.errors import TaskbatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)


class TextfileError(TaskbatchError):
    """The file is what it was before; the text is one line."""


def publish_textfile(read: Callable[[], bytes], path: str, timeout: float) -> bool:
    """Read the metrics and put them into `path`; True if that was done. Never raises.

    Runs of one machine take turns, for at most `timeout` seconds: an older text must not replace a newer one.
    """
    try:
        with _turn(Path(path).parent, time.monotonic() + timeout):
            write_textfile(path, read())
    except Exception as error:  # noqa: BLE001 - metrics never change what becomes of a run
        log.warning("metrics not written: %s", " ".join(str(error).split()) or type(error).__name__)
        return False
    return True


def write_textfile(path: str, text: bytes) -> None:
    """Replace `path` as a whole, readable for all (0644), or raise TextfileError.

    There is no fsync: a file that a power failure took comes back with the next run, and a sick disk
    must not hold up this one.
    """
    final = Path(path)
    # One fixed name, which a collector does not read (not *.prom): nothing piles up if we are killed here.
    partial = final.with_name(f".{final.name}.tmp")
    try:
        partial.unlink(missing_ok=True)
        with partial.open("xb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(text)
        partial.replace(final)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        msg = f"{path}: {error.strerror or error}"
        raise TextfileError(msg) from error


@contextmanager
def _turn(directory: Path, deadline: float) -> Iterator[None]:
    """Hold the directory's lock, which needs no file of its own and ends with the process."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        msg = f"{directory}: {error.strerror or error}"
        raise TextfileError(msg) from error
    try:
        while not _locked(descriptor):
            if time.monotonic() >= deadline:
                msg = f"{directory}: another run is still writing"
                raise TextfileError(msg)
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
