"""stderr as we use it: log lines, and below them one progress line if a person watches."""

from __future__ import annotations

import threading

from taskbatch.cli.streams import Stream, is_terminal

PATIENCE = 1.0
"""Seconds a line waits for a reader that has stopped reading; from then on lines are lost until it goes on."""

CLEAR = "\r\x1b[K"


class Console:
    """Lines go out whole, from any thread; nothing here raises or waits for ever."""

    def __init__(self) -> None:
        self.is_terminal = is_terminal(2)
        self._stream: Stream | None = None
        self._lock = threading.Lock()
        self._status = ""
        self._patience = PATIENCE

    def line(self, text: str) -> None:
        """Write a line, above the progress line if there is one."""
        with self._lock:
            self._write(f"{CLEAR}{text}\n{self._status}" if self._status else f"{text}\n")

    def status(self, text: str) -> None:
        """Replace the progress line; "" takes it away. Nothing happens where nobody watches."""
        if not self.is_terminal:
            return
        with self._lock:
            self._status = text
            self._write(f"{CLEAR}{text}")

    def _write(self, text: str) -> None:
        if self._stream is None:
            # Made when first needed: descriptors are put in order before.
            self._stream = Stream(2)
        done = self._stream.write(text.encode("utf-8", "backslashreplace"), self._patience)
        self._patience = PATIENCE if done else 0.0
