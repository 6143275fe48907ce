"""The handle by which the main thread ends a job that is over its timeout.

Python cannot stop a thread, but it can have an exception raised in it. That exception is delivered a little
later, at an arbitrary instruction, so the job may have ended meanwhile. Two rules make it harmless: it is
raised at most once, and `disarm` does not return before it has been delivered.

The two threads agree through one token that is taken once and never put back. Who takes it first has won:
the worker (the job has ended, nothing will be raised) or the main thread (the exception will be raised, and
the worker waits for it). The worker holds no lock, so there is none that the exception could leave locked.
"""

from __future__ import annotations

from threading import Lock, get_ident

_PATIENCE = 5.0
"""Seconds `disarm` waits for an `expire` that has won; that takes milliseconds."""


class JobTimeout(BaseException):
    """Raised inside a job that is over its timeout; no `except Exception` catches it. Clean up, then end.

    It may come between any two steps, also between taking a lock and the `try` that gives it back.
    """


class Watch:
    """Watches one invocation. `arm` and `disarm` belong to the thread of the job, `expire` to any other."""

    __slots__ = ("_raised", "_thread", "_token", "expired")

    def __init__(self) -> None:
        self._thread: int | None = None
        self._token = Lock()
        self._raised = Lock()
        self._raised.acquire()
        self.expired = False
        """Whether the timeout was raised, or is about to be."""

    def arm(self) -> None:
        """Let `expire` interrupt the calling thread from now on."""
        self._thread = get_ident()

    def expire(self) -> bool:
        """Raise JobTimeout in the job's thread. False: nothing is running under it, or it was done before.

        A thread in C code (a sleep, a read) gets it only when that returns.
        """
        import ctypes  # noqa: PLC0415 - 15 ms, and most runs never need it

        thread = self._thread
        if thread is None or not self._token.acquire(blocking=False):
            return False
        self.expired = True
        try:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(JobTimeout))
        finally:
            self._raised.release()
        return True

    def disarm(self) -> None:
        """End the watch: no JobTimeout comes after this has returned, or raised the one there is."""
        if self._token.acquire(blocking=False):
            return
        self._raised.acquire(timeout=_PATIENCE)
        # CPython delivers what is pending after a call and at every jump back: here, if it has not before.
        # (Taking it back through the C API instead leaves CPython 3.11 looking for it all the time: 8 %
        # slower from then on, and a debugger's trace function makes it hang.)
        for _ in range(100):
            pass
