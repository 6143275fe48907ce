"""A TCP proxy before a server that does what networks do: it loses commands, replies and whole connections.

    proxy.fail("swallow", "claim", nth=2)

A command is named by its script (`claim`), or else by its own name (`BLMOVE`). What can be done to it:

`drop`     the connection ends before the command reaches the server
`reset`    the same, with a TCP reset
`swallow`  the server has done it; then the connection ends, and its reply is lost
`late`     the connection ends at once, and the command reaches the server `seconds` later, as a ghost
`hole`     nothing passes any more on this connection, in neither direction; it stays open
`delay`    the command is held up for `seconds`
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import taskbatch.lua

from taskbatch.scripts import script

if TYPE_CHECKING:
    from collections.abc import Callable

Action = Literal["drop", "reset", "swallow", "late", "hole", "delay"]

NAMES = {script(path.stem).sha.encode(): path.stem for path in Path(str(taskbatch.lua.__file__)).parent.glob("*.lua")}


@dataclass
class Fault:
    """What happens to the `nth` command called `name` from now on, once."""

    action: Action
    name: str
    nth: int
    seconds: float
    happened: threading.Event


class Proxy:
    """Listens on `port` of this machine and passes on to the server at `target`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.seen: list[str] = []
        self.hole = False
        """New connections are accepted, and nothing they say gets anywhere."""
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def fail(self, action: Action, name: str, *, nth: int = 1, seconds: float = 0.0) -> threading.Event:
        """Plan a fault; the event returned is set when it has happened."""
        fault = Fault(action, name, nth, seconds, threading.Event())
        with self._lock:
            self._faults.append(fault)
        return fault.happened

    def close(self) -> None:
        self._listener.close()
        for one in self._open:
            _shut(one)

    def fate(self, command: list[bytes]) -> Fault | None:
        """Return what happens to a command that has just arrived."""
        name = _name(command)
        with self._lock:
            self.seen.append(name)
            for fault in [fault for fault in self._faults if fault.name == name]:
                fault.nth -= 1
                if fault.nth == 0:
                    self._faults.remove(fault)
                    return fault
        return None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                if self.hole:
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    _shut(client)
                    continue
                self._open.append(server)
                Pair(self, client, server).start()


class Pair:
    """One connection to the proxy and its own one to the server."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy = proxy
        self.client = client
        self.server = server
        self.sent = 0
        self.swallowing: tuple[int, Fault] | None = None

    def start(self) -> None:
        for work in (self._commands, self._replies):
            threading.Thread(target=self._quietly, args=(work,), daemon=True).start()

    def _quietly(self, work: Callable[[], None]) -> None:
        # Broken connections are what this is for.
        with contextlib.suppress(OSError, EOFError):
            work()
        _shut(self.client)
        _shut(self.server)

    def _commands(self) -> None:
        reader = Reader(self.client)
        while True:
            raw, command = reader.command()
            fault = self.proxy.fate(command)
            if fault is None or fault.action == "delay":
                time.sleep(fault.seconds if fault else 0)
                self._pass_on(raw)
                if fault:
                    fault.happened.set()
                continue
            if fault.action == "swallow":
                self.swallowing = (self.sent, fault)
                self._pass_on(raw)
                continue
            if fault.action == "reset":
                self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.client.close()
            elif fault.action == "late":
                _shut(self.client)
                threading.Timer(fault.seconds, self._haunt, (raw, fault)).start()
                threading.Event().wait(fault.seconds + 5)
            elif fault.action == "hole":
                fault.happened.set()
                threading.Event().wait(60)
            fault.happened.set()
            return

    def _pass_on(self, raw: bytes) -> None:
        self.sent += 1
        self.server.sendall(raw)

    def _haunt(self, raw: bytes, fault: Fault) -> None:
        ghost = socket.create_connection(("127.0.0.1", self.proxy.target))
        ghost.sendall(raw)
        Reader(ghost).reply()
        ghost.close()
        fault.happened.set()

    def _replies(self) -> None:
        reader = Reader(self.server)
        count = 0
        while True:
            raw = reader.reply()
            if self.swallowing and count == self.swallowing[0]:
                self.swallowing[1].happened.set()
                return
            count += 1
            self.client.sendall(raw)


class Reader:
    """Cuts what arrives into whole commands, or into whole replies."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._buffer = bytearray()

    def command(self) -> tuple[bytes, list[bytes]]:
        words: list[bytes] = []
        return self._value(words), words

    def reply(self) -> bytes:
        return self._value([])

    def _value(self, words: list[bytes]) -> bytes:
        line = self._line()
        kind, number = line[:1], line[1:-2]
        if kind == b"$" and int(number) >= 0:
            text = self._take(int(number) + 2)
            words.append(text[:-2])
            return line + text
        if kind == b"*" and int(number) > 0:
            return line + b"".join(self._value(words) for _ in range(int(number)))
        return line

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._more()
        return self._cut(end + 2)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._more()
        return self._cut(count)

    def _cut(self, count: int) -> bytes:
        part = bytes(self._buffer[:count])
        del self._buffer[:count]
        return part

    def _more(self) -> None:
        data = self._source.recv(65536)
        if not data:
            raise EOFError
        self._buffer += data


def _name(command: list[bytes]) -> str:
    first = command[0].upper()
    if first == b"EVALSHA":
        return NAMES.get(command[1], "unknown script")
    if first == b"EVAL":
        sha = hashlib.sha1(command[1], usedforsecurity=False).hexdigest().encode()
        return NAMES.get(sha, "unknown script")
    return first.decode()


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
