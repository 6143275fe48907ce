"""Where an embedded server lives: its files, and the directory that they are in.

Every death, `kill -9` included, releases the locks of the dead and needs no other clean-up:

    start.lock       held by whoever decides about starting or stopping, for the length of the decision
    supervisor.lock  held by the supervisor, all its life
    server.lock      held by the server itself (an inherited descriptor), all its life: never two on one AOF
    users/<random>   one a command, held by it all its life
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from taskbatch.errors import ConfigError

SCHEME = "embedded:"
SOCKET_PATH_LIMIT = 100  # bytes; the kernels' own limits are 108 (Linux) and 104 (macOS) with the final zero


@dataclass(frozen=True)
class Home:
    """The files of one embedded server; `directory` is absolute."""

    directory: Path

    @property
    def start_lock(self) -> Path:
        """Held while somebody decides about starting or stopping."""
        return self.directory / "start.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor."""
        return self.directory / "supervisor.lock"

    @property
    def server_lock(self) -> Path:
        """Held by the server."""
        return self.directory / "server.lock"

    @property
    def users(self) -> Path:
        """The directory of one locked file a command."""
        return self.directory / "users"

    @property
    def data(self) -> Path:
        """The server's own directory, with its AOF."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """What the server said since its last start."""
        return self.directory / "valkey.log"

    @property
    def socket(self) -> Path:
        """In the directory itself, or, if that path is too long for a socket, in a private one under /tmp."""
        here = self.directory / "valkey.sock"
        if len(os.fsencode(here)) <= SOCKET_PATH_LIMIT:
            return here
        name = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        # Not tempfile.gettempdir(): a cron job and a shell with another TMPDIR must find the same socket.
        return Path(f"/tmp/taskbatch-{os.getuid()}/{name}.sock")  # noqa: S108 - `prepare` checks whose it is

    def user_files(self) -> list[Path]:
        """One for each command, some perhaps of the dead; none when the directory is gone."""
        try:
            return sorted(self.users.iterdir())
        except FileNotFoundError:
            return []


def is_embedded(url: str) -> bool:
    """Whether this Redis URL asks for the embedded server."""
    return url.startswith(SCHEME)


def directory_of(url: str) -> Path:
    """Where the server of an `embedded:` URL lives; without a path in it, the default directory."""
    path = unquote(url.removeprefix(SCHEME).removeprefix("//"))
    return Path(path) if path else default_directory()


def default_directory() -> Path:
    """$TASKBATCH_EMBEDDED_DIR, else taskbatch/embedded in the user's state directory."""
    if chosen := os.environ.get("TASKBATCH_EMBEDDED_DIR"):
        return Path(chosen)
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path("~/.local/state")) / "taskbatch" / "embedded"


def prepare(directory: Path) -> Home:
    """Make the directories, private ones; ConfigError for those that others could tamper with."""
    try:
        home = Home(directory.expanduser().resolve())
    except RuntimeError as error:  # no home directory, as for a bare user id in a container
        message = f"the embedded server has no directory ({error}): set TASKBATCH_EMBEDDED_DIR"
        raise ConfigError(message) from error
    home.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in (home.directory, home.users, home.data, home.socket.parent):
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & stat.S_IWOTH:
            message = f"the embedded server needs a directory that is yours and only yours to write: {path}"
            raise ConfigError(message)
    return home
