"""The Redis edge: the one place that builds connections and turns their errors into ours.

redis-py's own retries are switched off: a repeated claim, enqueue or settle after a lost reply would
strand or double a task. Who calls decides what a lost reply means.
"""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING, Any

import redis.connection
from redis import exceptions as errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from taskbatch.errors import ConfigError, DoubtError, RefusedError, TaskbatchError, UnreachableError
from taskbatch.logs import Redactor
from taskbatch.settings import is_plain, redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskbatch.settings import RedisSettings

Command = tuple[Any, ...]
_ALIASES = {"valkey": "redis", "valkeys": "rediss"}
_REFUSED = (
    "OOM",
    "READONLY",
    "BUSY",
    "LOADING",
    "UNBLOCKED",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
    "MISCONF",
)
_CONNECT_PATIENCE = 2.0
_ERROR_REPLIES = (
    errors.ResponseError,
    errors.AuthenticationError,
    errors.AuthorizationError,
    errors.BusyLoadingError,
    errors.MaxConnectionsError,
)


class Link:
    """One connection. Sends commands in one round trip and gives their replies back in order.

    `timeout` is how long a reply may take, in seconds; it may be shortened when time runs out.

    Raises UnreachableError when nothing was sent, DoubtError when replies were lost, ConfigError when
    Redis refuses who we are. Errors Redis answers to single commands are returned, not raised.
    """

    def __init__(self, settings: RedisSettings) -> None:
        self.address = redact(settings.url)
        self.timeout = settings.timeout
        self._usual_timeout = settings.timeout
        # Any: redis-py's interface of a connection does not name its timeouts.
        self._connection: Any = _pool(settings).make_connection()
        self._is_tls = settings.url.startswith(("rediss:", "valkeys:"))

    def connect(self, patience: float = _CONNECT_PATIENCE) -> None:
        """Connect, trying again for at most `patience` seconds while the server starts or loads."""
        until = time.monotonic() + patience
        self._connection.socket_timeout = self._connection.socket_connect_timeout = self._usual_timeout = self.timeout
        while True:
            try:
                self._connection.connect()
                if self._is_tls:
                    self._hear()
            except Exception as error:
                self._connection.disconnect()
                problem = self._not_connected(error)
                if isinstance(problem, ConfigError) or time.monotonic() >= until:
                    raise problem from error
                time.sleep(0.05)
            else:
                return

    def exchange(self, commands: Sequence[Command], *, timeout: float | None = None) -> list[Any]:
        """Send `commands` together and return their replies; an error reply is an exception object in the list.

        `timeout` is how long each reply may take, in seconds (default: the link's).
        """
        connection = self._connection
        if not connection.is_connected:
            self.connect(0.0)
        try:
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            return [self._reply(timeout) for _ in commands]
        except (errors.ConnectionError, errors.TimeoutError, errors.InvalidResponse, OSError) as error:
            connection.disconnect()
            msg = f"lost the connection to {self.address}: {_one_line(error)}"
            raise DoubtError(msg) from error
        except BaseException:
            # Whatever is still on its way answers a question nobody remembers.
            connection.disconnect()
            raise

    def call(self, *command: Any, timeout: float | None = None) -> Any:  # noqa: ANN401 - a Redis reply
        """Send one command and return its reply; raises what `checked` raises for an error reply."""
        return checked(self.exchange([command], timeout=timeout)[0])

    def close(self) -> None:
        """Close the connection; it opens again when used."""
        self._connection.disconnect()

    def _hear(self) -> None:
        # A server that wants a certificate of ours says so after the handshake, in the place of its first reply.
        try:
            self._connection.send_command("PING", check_health=False)
            self._connection.read_response()
        except _ERROR_REPLIES:
            # It speaks; whether we may ask what we are going to ask is seen then.
            return

    def _reply(self, timeout: float | None) -> Any:  # noqa: ANN401 - a Redis reply
        # An error reply must not cost the connection: the replies after it are still to be read.
        wanted = self.timeout if timeout is None else timeout
        wait = {} if wanted == self._usual_timeout else {"timeout": wanted}
        try:
            return self._connection.read_response(disconnect_on_error=False, **wait)
        except _ERROR_REPLIES as error:
            return error

    def _not_connected(self, error: Exception) -> TaskbatchError:
        if isinstance(error, (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError)):
            return ConfigError(f"{self.address} refuses us: {_one_line(error)}")
        if isinstance(error, errors.ResponseError):
            return ConfigError(f"{self.address}: {_one_line(error)}")
        if (trouble := _tls_trouble(error)) is not None:
            return ConfigError(f"TLS to {self.address} failed: {_one_line(trouble)}")
        return UnreachableError(f"cannot reach Redis at {self.address}: {_one_line(error)}")


def checked(reply: Any) -> Any:  # noqa: ANN401 - a Redis reply
    """Return `reply`, or raise what an error reply means: ConfigError, RefusedError or TaskbatchError."""
    if not isinstance(reply, Exception):
        return reply
    text = _one_line(reply)
    if isinstance(reply, (errors.NoPermissionError, errors.AuthenticationError, errors.AuthorizationError)) or any(
        word in text for word in ("NOPERM", "NOAUTH", "ACL failure", "has no permissions", "can't run this command")
    ):
        raise ConfigError(f"Redis refuses: {text}") from reply
    if "WRONGTYPE" in text or "unknown command" in text.lower():
        raise ConfigError(text) from reply
    if isinstance(reply, (errors.OutOfMemoryError, errors.ReadOnlyError, errors.BusyLoadingError)) or any(
        text.startswith(word) or f" {word} " in f" {text} " for word in _REFUSED
    ):
        raise RefusedError(f"Redis refuses: {text}") from reply
    raise TaskbatchError(f"Redis: {text}") from reply


def _pool(settings: RedisSettings) -> redis.connection.ConnectionPool:
    scheme, _, rest = settings.url.partition(":")
    url = f"{_ALIASES.get(scheme, scheme)}:{rest}"
    options: dict[str, Any] = {
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": settings.timeout,
        "socket_connect_timeout": settings.timeout,
        "health_check_interval": 0,
        "decode_responses": False,
        # No CLIENT SETINFO: two round trips that every start would pay for.
        "driver_info": None,
    }
    if not is_plain(url) and not url.startswith("unix:"):
        # Before anything looks up the half of a password as a host.
        msg = f"Redis URL {redact(settings.url)!r} cannot be read; in a password, write / ? # @ : percent-encoded"
        raise ConfigError(msg)
    try:
        parsed = redis.connection.parse_url(url)
    except ValueError as error:
        # Its text may quote the URL, so it is not for tracebacks.
        told = Redactor()
        told.learn(*settings.secrets)
        msg = f"Redis URL {redact(settings.url)!r}: {told(_one_line(error))}"
        raise ConfigError(msg) from None
    if parsed.pop("decode_responses", False):
        msg = "decode_responses in the Redis URL: tasks are bytes, decoding them would lose some"
        raise ConfigError(msg)
    tls = {"ssl_ca_certs": settings.ca_file, "ssl_certfile": settings.cert_file, "ssl_keyfile": settings.key_file}
    given = {name: value for name, value in tls.items() if value}
    if given and not url.startswith("rediss:"):
        msg = "TLS files are given, but the Redis URL is not rediss://"
        raise ConfigError(msg)
    for path in given.values():
        _check_readable(path)
    if url.startswith("rediss:"):
        # Without one, OpenSSL would ask for the password of an encrypted key, and wait for an answer.
        options["ssl_password"] = parsed.pop("ssl_password", "")
    login = {"username": settings.username, "password": settings.password}
    # A wish in the URL for another protocol or for retries does not count: see above.
    merged = {**parsed, **options, **given, **{name: value for name, value in login.items() if value}}
    return redis.connection.ConnectionPool(**merged)


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb"):  # noqa: PTH123 - pathlib costs a run that finds nothing 11 ms
            pass
    except OSError as error:
        msg = f"TLS: cannot read {path!r}: {error.strerror}"
        raise ConfigError(msg) from error


def _tls_trouble(error: BaseException | None) -> ssl.SSLError | None:
    """Return what TLS does not like about the other side, or it about us; not that a connection just ended."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            passing = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, TimeoutError)
            return None if isinstance(error, passing) or "timed out" in str(error) else error
        error = error.__cause__ or error.__context__
    return None


def _one_line(error: object) -> str:
    # Redis quotes what it does not understand, and of an AUTH that is the password.
    text, _, _ = str(error).partition(", with args beginning with")
    return " ".join(text.split())[:300]
