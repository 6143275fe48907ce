"""The end of the process: always, and with the right exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import NoReturn

from taskbatch.cli.streams import flush

INTERRUPTED = 75
"""As ExitCode has it; this is needed before anything is imported."""

PATIENCE = 1.5
"""Seconds that threads a job has leaked, and what runs at exit, may take; then the process ends without them."""


def leave(code: int) -> NoReturn:
    """End the process with `code`, in the usual way if that works."""
    _end_late(code)
    flush()
    sys.exit(code)


def leave_at_once(code: int) -> NoReturn:
    """End the process now: what still runs cannot be waited for."""
    _end_late(code)
    flush()
    os._exit(code)


def obey_as_first_process() -> None:
    """Let SIGTERM end us where nothing would: the kernel spares process 1, which a container's program is."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(INTERRUPTED))


def other_threads() -> bool:
    """Return whether threads run that Python would wait for before it ends."""
    own = (threading.current_thread(), threading.main_thread())
    return any(not thread.daemon and thread not in own for thread in threading.enumerate())


def _end_late(code: int) -> None:
    """End the process in a while, whatever it is doing then. Even flushing can hang: on a print that does."""

    def end() -> None:
        # Not sleep(): where the clock is faked it can fail, and then nothing would end us.
        threading.Event().wait(PATIENCE)
        os._exit(code)

    threading.Thread(target=end, name="taskbatch-exit", daemon=True).start()
