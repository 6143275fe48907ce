"""One push to a Pushgateway: a PUT of a whole group, with one deadline for all of it.

A timeout of a socket is one of each operation: a gateway that sends a byte now and then would hold us for
ever, and a name server for as long as it likes. So the exchange has a thread of its own, which is waited
for until the deadline and then cut off. There is no proxy and no redirect: credentials go to one host.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskbatch.errors import TaskbatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.metrics.snapshot import Snapshot
    from taskbatch.metrics.target import PushTarget

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SHOWN = 200
"""Most characters of a gateway's answer that are shown."""


class PushError(TaskbatchError):
    """Nothing was pushed, as far as we know; its text is one line without secrets."""


def gateway(target: PushTarget) -> Callable[[Snapshot, float], None]:
    """Return the function that renders a snapshot and pushes it to `target` within so many seconds."""

    def push_once(snapshot: Snapshot, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        from taskbatch.metrics.render import render  # noqa: PLC0415 - 60 ms that an idle run need not pay

        push(render([snapshot]), target, snapshot.queue, deadline - time.monotonic())

    return push_once


def push(text: bytes, target: PushTarget, queue: str, timeout: float) -> None:
    """Replace the group of `queue` by `text` or raise PushError; within `timeout` seconds in any case."""
    if timeout <= 0:
        msg = f"{target}: no time left"
        raise PushError(msg)
    exchange = _Exchange(text, target, target.group(queue), time.monotonic() + timeout)
    thread = threading.Thread(target=exchange.run, name="taskbatch-push", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        msg = f"{target}: {error}"
        raise PushError(msg) from error
    thread.join(timeout)
    answer = exchange.answer
    if answer is None and exchange.error is None:
        exchange.cut()
        msg = f"{target}: no answer within {timeout:.3g} s"
        raise PushError(msg)
    if answer is None:
        msg = f"{target}: {_one_line(target.redact(_reason(exchange.error)))}"
        raise PushError(msg)
    if not answer.accepted:
        msg = f"{target}: {_one_line(target.redact(answer.text))}"
        raise PushError(msg)


@dataclass(frozen=True, slots=True)
class _Answer:
    accepted: bool
    text: str


class _Exchange:
    """The request and its answer, on one thread; another may cut it off at any point."""

    def __init__(self, body: bytes, target: PushTarget, path: str, deadline: float) -> None:
        self._body = body
        self._target = target
        self._path = path
        self._deadline = deadline
        self._guard = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False
        self.answer: _Answer | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Leave the answer or the error behind."""
        try:
            self.answer = self._exchange()
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits for us
            self.error = error
        finally:
            with self._guard:
                if self._socket is not None:
                    self._socket.close()

    def cut(self) -> None:
        """End the exchange: nothing more is sent, and the thread comes back from whatever it waits for."""
        with self._guard:
            self._is_cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # The plain method: that of a TLS socket first drops the session the thread still uses.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _exchange(self) -> _Answer:
        connection = http.client.HTTPConnection(self._target.host, self._target.port)
        # A job may have switched this on for the whole process: it prints headers.
        connection.set_debuglevel(0)
        connection.sock = self._connect()
        headers = {"Host": self._target.authority, "Content-Type": CONTENT_TYPE, "Connection": "close"}
        if self._target.authorization:
            headers["Authorization"] = self._target.authorization
        connection.request("PUT", self._path, self._body, headers)
        with connection.getresponse() as response:
            return _read(response)

    def _connect(self) -> socket.socket:
        # Beyond the deadline: it is `cut` that ends us, this only a thread that nobody waits for any more.
        left = max(self._deadline - time.monotonic(), 0.0) + 1.0
        # Before there is a connection: a CA file that cannot be read is known at once.
        context = _tls(self._target) if self._target.scheme == "https" else None
        plain = self._hold(socket.create_connection((self._target.host, self._target.port), timeout=left))
        if context is None:
            return plain
        secure = context.wrap_socket(plain, server_hostname=self._target.host, do_handshake_on_connect=False)
        self._hold(secure)
        secure.do_handshake()
        return secure

    def _hold(self, connected: socket.socket) -> socket.socket:
        """Make a socket known to `cut`. One that comes too late sends nothing: its totals are old by then."""
        with self._guard:
            self._socket = connected
            if self._is_cut:
                raise TimeoutError
            return connected


def _tls(target: PushTarget) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=target.ca_file)
    except OSError as error:
        msg = f"CA file {target.ca_file}: {error.strerror or error}"
        raise PushError(msg) from error


def _read(response: http.client.HTTPResponse) -> _Answer:
    """Return what the gateway said; of a refusal the first line, as far as it comes with the first packet."""
    if 200 <= response.status < 300:  # noqa: PLR2004 - HTTP's
        return _Answer(accepted=True, text="")
    said = f"{response.status} {response.reason}"
    if 300 <= response.status < 400:  # noqa: PLR2004 - HTTP's
        return _Answer(accepted=False, text=f"{said} (redirects are not followed)")
    with contextlib.suppress(OSError, http.client.HTTPException):
        lines = response.read1(4 * MAX_SHOWN).decode("utf-8", "replace").strip().splitlines()
        said = f"{said}: {lines[0]}" if lines else said
    return _Answer(accepted=False, text=said)


def _reason(error: Exception | None) -> str:
    match error:
        case PushError():
            return str(error)
        case OSError(strerror=str(reason)):
            return reason
        case _:
            return f"{type(error).__name__}: {error}"


def _one_line(text: str) -> str:
    """Return `text` bounded, and with everything escaped that could move a cursor or end a line."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "…"
