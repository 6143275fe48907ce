"""TLS to Redis: verified by default, and what is wrong with it is one clear line and exit code 78."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.batches import task
from tests.daemon import Daemon, free_port
from tests.security import canary
from tests.security.authority import Authority, Certificate
from tests.servers import UnavailableError, local_binary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.program import Cli, Result
    from tests.servers import Server

HERE = "IP:127.0.0.1,DNS:localhost"
JOBS = "from taskbatch import job\n@job('note')\ndef note(): pass\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def good(authority: Authority) -> Certificate:
    return authority.issue("good", hosts=HERE)


class TlsServer:
    """A Redis that speaks TLS only, on `port`."""

    def __init__(self, directory: Path, certificate: Certificate, ca: str, *, clients: str = "no") -> None:
        directory.mkdir()
        self.port = free_port()
        self._client = {"port": self.port, "ssl": True, "ssl_ca_certs": ca, "ssl_cert_reqs": "none"}
        self._client |= {"ssl_certfile": certificate.cert, "ssl_keyfile": certificate.key}
        command = [local_binary("redis"), "--port", "0", "--tls-port", f"{self.port}", "--bind", "127.0.0.1"]
        command += ["--tls-cert-file", certificate.cert, "--tls-key-file", certificate.key, "--tls-ca-cert-file", ca]
        command += ["--tls-auth-clients", clients, "--save", "", "--dir", str(directory)]
        self.daemon = Daemon(command, directory, self._answers)

    def client(self) -> redis.Redis:
        return redis.Redis(**self._client, protocol=2)

    def _answers(self) -> bool:
        client = self.client()
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()


@pytest.fixture
def tls_server(tmp_path: Path, authority: Authority) -> Iterator[Callable[..., TlsServer]]:
    started: list[TlsServer] = []

    def start(certificate: Certificate, **options: Any) -> TlsServer:
        try:
            server = TlsServer(tmp_path / f"server{len(started)}", certificate, authority.ca.cert, **options)
        except UnavailableError as error:
            pytest.skip(str(error))
        started.append(server)
        server.daemon.start()
        return server

    yield start
    for server in started:
        server.daemon.stop()


def run(cli: Cli, url: str, *arguments: str, **env: str) -> Result:
    """Run a batch with the canary as password, as loud as it gets."""
    (cli.cwd / "jobs.py").write_text(JOBS)
    env |= {"TASKBATCH_REDIS_PASSWORD": canary.PASSWORD} if "Canary" in arguments else {}
    words = [word for word in arguments if word != "Canary"]
    return cli("run", "--wait", "0s", "--report", "json", "--redis-url", url, *words, env=env)


def check_refused(result: Result, says: str) -> None:
    """One line says what is wrong, and the report says the same."""
    assert result.returncode == 78, result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("taskbatch: error: ")
    assert says in lines[0]
    assert result.json()["exit_code"] == 78
    assert says in result.json()["error"]


@pytest.mark.parametrize("place", ["rediss://127.0.0.1", "rediss://localhost", "valkeys://localhost"])
def test_a_good_certificate(
    cli: Cli,
    authority: Authority,
    good: Certificate,
    tls_server: Callable[..., TlsServer],
    place: str,
) -> None:
    server = tls_server(good)
    with server.client() as client:
        client.lpush("taskbatch:{default}:pending", task("note", "one"))

    result = run(cli, f"{place}:{server.port}/0", "--redis-ca-file", authority.ca.cert)

    assert result.returncode == 0, result.stderr
    assert result.json()["succeeded"] == 1


def test_nobody_is_trusted_unless_told(cli: Cli, good: Certificate, tls_server: Callable[..., TlsServer]) -> None:
    server = tls_server(good)

    check_refused(run(cli, f"rediss://127.0.0.1:{server.port}"), "certificate verify failed")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hosts": HERE, "days": -1}, "certificate has expired"),
        ({"hosts": HERE, "own": True}, "self-signed certificate"),
        ({"hosts": "DNS:elsewhere.example"}, "certificate is not valid for '127.0.0.1'"),
        ({}, "certificate is not valid for '127.0.0.1'"),
    ],
)
def test_a_bad_certificate(
    cli: Cli, authority: Authority, tls_server: Callable[..., TlsServer], options: dict[str, Any], says: str
) -> None:
    server = tls_server(authority.issue("bad", **options))
    url, trust = f"rediss://127.0.0.1:{server.port}", ["--redis-ca-file", authority.ca.cert]

    check_refused(run(cli, url, *trust), says)

    # Nobody has seen the password by then, and nobody sees it now.
    loud = run(cli, url, *trust, "-v", "-v", "Canary")
    assert loud.returncode == 78
    canary.check(loud.stdout, loud.stderr)


def test_a_certificate_of_another_authority(
    cli: Cli, tmp_path: Path, authority: Authority, good: Certificate, tls_server: Callable[..., TlsServer]
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other")
    server = tls_server(good)

    result = run(cli, f"rediss://127.0.0.1:{server.port}", "--redis-ca-file", other.ca.cert)

    check_refused(result, "certificate verify failed")


def test_a_client_certificate(
    cli: Cli, tmp_path: Path, authority: Authority, good: Certificate, tls_server: Callable[..., TlsServer]
) -> None:
    server = tls_server(good, clients="yes")
    url, trust = f"rediss://127.0.0.1:{server.port}", ["--redis-ca-file", authority.ca.cert]
    mine = authority.issue("me")
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other", "other").issue("stranger")

    def as_(certificate: Certificate) -> list[str]:
        return ["--redis-cert-file", certificate.cert, "--redis-key-file", certificate.key]

    assert run(cli, url, *trust, *as_(mine)).returncode == 0
    check_refused(run(cli, url, *trust), "TLS to rediss://127.0.0.1")
    check_refused(run(cli, url, *trust, *as_(stranger)), "TLS to rediss://127.0.0.1")
    check_refused(
        run(cli, url, *trust, "--redis-cert-file", mine.cert, "--redis-key-file", good.key), "KEY_VALUES_MISMATCH"
    )


def test_an_encrypted_key(
    cli: Cli, authority: Authority, good: Certificate, tls_server: Callable[..., TlsServer]
) -> None:
    server = tls_server(good, clients="yes")
    mine = authority.issue("me")
    locked = authority.lock(mine, canary.MARK)
    options = ["--redis-ca-file", authority.ca.cert, "--redis-cert-file", mine.cert, "--redis-key-file", locked]

    opened = run(cli, f"rediss://127.0.0.1:{server.port}?ssl_password={canary.MARK}", *options)
    closed = run(cli, f"rediss://127.0.0.1:{server.port}", *options)
    wrong = run(cli, f"rediss://127.0.0.1:{server.port}?ssl_password={canary.MARK}x", *options, "-v", "-v")

    assert opened.returncode == 0, opened.stderr
    check_refused(closed, "TLS to rediss://127.0.0.1")
    assert wrong.returncode == 78
    canary.check(wrong.stdout, wrong.stderr)


@pytest.mark.parametrize("option", ["--redis-ca-file", "--redis-cert-file", "--redis-key-file"])
def test_a_file_that_is_not_there(cli: Cli, option: str) -> None:
    check_refused(run(cli, "rediss://127.0.0.1:1", option, "/no/such.pem"), "cannot read '/no/such.pem'")


def test_a_file_that_holds_no_certificate(
    cli: Cli, tmp_path: Path, good: Certificate, tls_server: Callable[..., TlsServer]
) -> None:
    server = tls_server(good)
    (tmp_path / "ca.pem").write_text("nothing\n")

    check_refused(run(cli, f"rediss://127.0.0.1:{server.port}", "--redis-ca-file", str(tmp_path / "ca.pem")), "TLS to ")


def test_files_for_a_url_without_tls(cli: Cli, good: Certificate) -> None:
    check_refused(run(cli, "redis://127.0.0.1:1", "--redis-ca-file", good.cert), "the Redis URL is not rediss://")


def test_a_server_without_tls(cli: Cli, server: Server) -> None:
    result = run(cli, f"rediss://127.0.0.1:{server.port}", "Canary", "-v", "-v")

    assert result.returncode in {69, 78}
    canary.check(result.stdout, result.stderr)


def test_a_server_with_tls_that_is_not_expected(
    cli: Cli, good: Certificate, tls_server: Callable[..., TlsServer]
) -> None:
    server = tls_server(good)

    assert run(cli, f"redis://127.0.0.1:{server.port}").returncode == 69
