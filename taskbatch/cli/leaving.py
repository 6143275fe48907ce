"""The end of the process: always, and with the right exit code."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import NoReturn

from taskbatch.cli.streams import flush

PATIENCE = 1.5
"""Seconds that threads a job has leaked, and what runs at exit, may take; then the process ends without them."""


def leave(code: int) -> NoReturn:
    """End the process with `code`, in the usual way if that works."""
    flush()
    threading.Thread(target=_end_late, args=(code,), name="taskbatch-exit", daemon=True).start()
    sys.exit(code)


def leave_at_once(code: int) -> NoReturn:
    """End the process now: what still runs cannot be waited for."""
    flush()
    os._exit(code)


def other_threads() -> bool:
    """Return whether threads run that Python would wait for before it ends."""
    own = (threading.current_thread(), threading.main_thread())
    return any(not thread.daemon and thread not in own for thread in threading.enumerate())


def _end_late(code: int) -> None:
    time.sleep(PATIENCE)
    flush()
    os._exit(code)
