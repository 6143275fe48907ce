"""`file.archive`: compress a file to `<name>.gz` and remove it.

At least once: each step recognises that it was done. A crash before the move leaves only a temporary file;
a crash after it leaves both files, and then compressing again writes the same bytes. When only the archive
is left, the work is done and the task succeeds. (So the name must not be used again for another file.)

    taskbatch enqueue file.archive '{"path": "logs/app-2024-05-01.log"}'

Files are below the directory in ARCHIVE_ROOT (the current one by default); a payload cannot leave it.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from taskbatch import job


@dataclass(frozen=True)
class File:
    """A file below ARCHIVE_ROOT."""

    path: str


@job("file.archive", timeout=600)
def archive(file: File) -> None:
    """Replace the file by its compressed form."""
    root = Path(os.environ.get("ARCHIVE_ROOT", ".")).resolve()
    source = (root / file.path).resolve()
    if not source.is_relative_to(root):
        msg = f"{file.path} is outside of {root}"
        raise PermissionError(msg)
    target = source.with_name(f"{source.name}.gz")
    if not source.exists() and target.exists():
        return
    compress(source, target)
    source.unlink(missing_ok=True)  # missing: another run of this task was faster


def compress(source: Path, target: Path) -> None:
    """Write the archive under another name, then move it into place: nobody ever sees half of it."""
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as unfinished:
        try:
            # Without a name and a time inside, the same file always makes the same bytes.
            with source.open("rb") as plain, gzip.GzipFile("", "wb", fileobj=unfinished, mtime=0) as packed:
                shutil.copyfileobj(plain, packed)
            unfinished.flush()
            os.fsync(unfinished.fileno())
            shutil.copystat(source, unfinished.name)
            Path(unfinished.name).replace(target)
        except BaseException:  # the timeout too, which is no Exception
            Path(unfinished.name).unlink(missing_ok=True)
            raise
