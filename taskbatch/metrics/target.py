"""Where metrics are pushed to: a checked URL, and the credentials that are never printed."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from taskbatch.errors import ConfigError

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PushTarget:
    """A Pushgateway. Made by `push_target`; its text form names scheme, host and port only."""

    scheme: str
    host: str
    port: int
    path: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """Return host and port as a URL and a Host header have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def authorization(self) -> str | None:
        """Return the value of the Authorization header, if there is one to send."""
        if self.token:
            return f"Bearer {self.token}"
        if self.user is not None:
            return "Basic " + base64.b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
        return None

    def group(self, queue: str) -> str:
        """Return the path of a queue's group; without run or host, or the gateway would collect groups."""
        # A segment of dots would be taken for a directory.
        if not queue.strip("."):
            encoded = base64.urlsafe_b64encode(queue.encode()).decode()
            return f"{self.path}/metrics/job/taskbatch/queue@base64/{encoded}"
        return f"{self.path}/metrics/job/taskbatch/queue/{quote(queue)}"

    def redact(self, text: str) -> str:
        """Return `text` without the credentials, plain, percent-encoded or as they stand in the header."""
        secrets = [secret for secret in (self.password, self.token) if secret]
        forms = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote(secret))}
        if self.authorization:
            forms.add(self.authorization.partition(" ")[2])
        for secret in sorted(forms, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def push_target(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    ca_file: str | None = None,
) -> PushTarget:
    """Return the target that a URL and credentials name, or raise ConfigError, without any secret in it.

    Credentials in the URL (percent-encoded) are taken as basic auth; the password may come apart. The path
    of `ca_file` is made absolute, because a job may change the working directory.
    """
    parts, port = _split(url)
    if (user and parts.username) or (password and parts.password):
        msg = "pushgateway: credentials both in the URL and apart from it; give one"
        raise ConfigError(msg)
    user = user or unquote(parts.username or "") or None
    password = password or unquote(parts.password or "") or None
    if token and user is not None:
        msg = "pushgateway: a token and a user; give one of them"
        raise ConfigError(msg)
    if password and user is None:
        msg = "pushgateway: a password without a user"
        raise ConfigError(msg)
    if user is not None and ":" in user:
        msg = "pushgateway: a user name cannot contain ':'"
        raise ConfigError(msg)
    if token and not _is_plain(token):
        msg = "pushgateway: the token contains characters that are not allowed in one"
        raise ConfigError(msg)
    if ca_file and parts.scheme != "https":
        msg = "pushgateway: a CA file is for https:// URLs only"
        raise ConfigError(msg)
    return PushTarget(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=port,
        path=quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~"),
        user=user,
        password=password,
        token=token,
        ca_file=str(Path(ca_file).absolute()) if ca_file else None,
    )


def _split(url: str) -> tuple[SplitResult, int]:
    """Return the parts of a URL and its port. The errors do not show the URL: it may hold a password."""
    if not _is_plain(url):
        msg = "pushgateway: the URL contains spaces or control characters"
        raise ConfigError(msg)
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname
    except ValueError:
        msg = "pushgateway: the URL cannot be read; write http://host:9091"
        raise ConfigError(msg) from None
    if parts.scheme not in _DEFAULT_PORTS:
        msg = "pushgateway: the URL must start with http:// or https://"
        raise ConfigError(msg)
    if not host:
        msg = "pushgateway: the URL names no host"
        raise ConfigError(msg)
    if parts.query or parts.fragment:
        msg = "pushgateway: the URL must not have a query or a fragment"
        raise ConfigError(msg)
    return parts, _DEFAULT_PORTS[parts.scheme] if port is None else port


def _is_plain(text: str) -> bool:
    return all("!" <= character <= "~" for character in text)
