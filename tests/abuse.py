"""Jobs that misbehave, each in its own way. A run must bear them all: they fail their own task, if that."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

from taskbatch import job


class HostileError(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __repr__ = __str__


class Hostile:
    """A return value that cannot be looked at."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    def __bool__(self) -> bool:
        raise RuntimeError("do not test me")

    __hash__ = None  # type: ignore[assignment]


@job("good")
def good() -> None:
    """Behave."""


@job("exits")
def exits() -> None:
    """Try to end the process with success."""
    sys.exit(0)


@job("interrupts")
def interrupts() -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


@job("closes")
def closes() -> None:
    """Raise what ends a generator."""
    raise GeneratorExit


@job("hostile")
def hostile() -> None:
    """Raise an error that raises when it is shown."""
    raise HostileError


@job("surrogates")
def surrogates() -> None:
    """Raise text that is no UTF-8."""
    raise ValueError("\udcff\x00\x1b[31m" * 3000)


@job("recurses")
def recurses() -> None:
    """Go too deep."""
    recurses.function()


@job("returns")
def returns() -> object:
    """Return what cannot be looked at."""
    return Hostile()


@job("leaks")
def leaks() -> None:
    """Leave a thread behind that never ends."""
    threading.Thread(target=threading.Event().wait, daemon=False).start()


@job("prints")
def prints() -> None:
    """Write to stdout, by all ways."""
    print("I am not JSON" * 1000)  # noqa: T201
    os.write(1, b"nor am I\n" * 1000)
    subprocess.run(["echo", "nor I"], check=True)


@job("moves")
def moves() -> None:
    """Go to another directory, and take it away."""
    place = f"/tmp/taskbatch-abuse-{os.getpid()}"  # noqa: S108
    os.mkdir(place)  # noqa: PTH102
    os.chdir(place)
    os.rmdir(place)  # noqa: PTH106


@job("hurries")
def hurries() -> None:
    """Make every new socket impatient."""
    socket.setdefaulttimeout(0.001)


@job("forks")
def forks() -> None:
    """Fork, and return on both sides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.fork()


@job("spawns")
def spawns() -> None:
    """Leave a child behind that holds stdout and stderr open."""
    subprocess.Popen(["sleep", "2"])


@job("closes_stdio")
def closes_stdio() -> None:
    """Close descriptors that it does not own."""
    os.close(0)


@job("signals")
def signals() -> None:
    """Take over the handlers; only the main thread may, so it fails."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@job("swallows", timeout=0.3)
def swallows() -> None:
    """Catch its own timeout, once."""
    try:
        while True:
            time.sleep(0.01)
    except BaseException:  # noqa: BLE001
        return


@job("large")
def large() -> None:
    """Raise an error of 50 MB."""
    raise ValueError("x" * 50_000_000)
