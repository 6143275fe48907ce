"""One push: to a real gateway, and to gateways that misbehave."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import ssl
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from taskbatch.metrics.push import PushError, gateway, push
from taskbatch.metrics.snapshot import Snapshot
from taskbatch.metrics.target import push_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import StartPushgateway
    from tests.monitoring import Pushgateway

TEXT = b"# HELP a_total A.\n# TYPE a_total counter\na_total 1\n"
SNAPSHOT = Snapshot("mail", {"claimed": 3}, {}, paused=False, oldest_pending_ms=None, version="1")
OK = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


class RawGateway:
    """Accepts connections and leaves each to `serve`; `requests` are what was asked."""

    def __init__(self, serve: Callable[[socket.socket], None], wrap: ssl.SSLContext | None = None) -> None:
        self._serve, self._wrap = serve, wrap
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' if wrap else ''}://127.0.0.1:{self.port}"
        self.requests: list[bytes] = []
        self.ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if self._wrap:
                with self._wrap.wrap_socket(connection, server_side=True) as secure:
                    self._answer(secure)
            else:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        self.requests.append(_request(connection))
        try:
            self._serve(connection)
        finally:
            self.ended.set()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _request(connection: socket.socket) -> bytes:
    """Return one whole request, or what came before the connection ended."""
    with connection.makefile("rb") as stream:
        head = b""
        while not head.endswith(b"\r\n\r\n") and (line := stream.readline()):
            head += line
        length = re.search(rb"(?i)content-length: (\d+)", head)
        return head + (stream.read(int(length[1])) if length else b"")


StartRaw = "Callable[..., RawGateway]"


@pytest.fixture
def raw() -> Iterator[StartRaw]:
    started: list[RawGateway] = []

    def start(serve: Callable[[socket.socket], None], wrap: ssl.SSLContext | None = None) -> RawGateway:
        started.append(RawGateway(serve, wrap))
        return started[-1]

    yield start
    for one in started:
        one.close()


def says(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(answer)


def refusal(url: str, *, timeout: float = 5.0, **credentials: str) -> str:
    """Push to `url` and return the error, which must come in time and be one line."""
    began = time.monotonic()
    with pytest.raises(PushError) as refused:
        push(TEXT, push_target(url, **credentials), "mail", timeout)
    assert time.monotonic() - began < timeout + 0.5
    text = str(refused.value)
    assert text.isprintable()
    return text


# The real gateway


def test_a_push_is_one_group_without_run_or_host(pushgateway: Pushgateway) -> None:
    gateway(push_target(pushgateway.url))(SNAPSHOT, 5.0)
    gateway(push_target(pushgateway.url))(SNAPSHOT, 5.0)

    assert [group["labels"] for group in pushgateway.groups()] == [{"job": "taskbatch", "queue": "mail"}]
    assert 'taskbatch_claimed_total{instance="",job="taskbatch",queue="mail"} 3' in pushgateway.metrics()


def test_a_push_replaces_all_of_the_group(pushgateway: Pushgateway) -> None:
    target = push_target(pushgateway.url)
    push(b"# TYPE taskbatch_old_metric gauge\ntaskbatch_old_metric 1\n", target, "mail", 5.0)

    push(b"# TYPE taskbatch_new_metric gauge\ntaskbatch_new_metric 1\n", target, "mail", 5.0)

    assert "taskbatch_old_metric" not in pushgateway.metrics()
    assert "taskbatch_new_metric" in pushgateway.metrics()


@pytest.mark.parametrize("queue", [".", "..", "...", "a.b-c_D", "q" * 64])
def test_every_queue_name_arrives_as_it_is(pushgateway: Pushgateway, queue: str) -> None:
    snapshot = Snapshot(queue, {}, {}, paused=False, oldest_pending_ms=None, version="1")

    gateway(push_target(pushgateway.url))(snapshot, 5.0)

    assert [group["labels"]["queue"] for group in pushgateway.groups()] == [queue]


def test_the_path_of_the_url_is_kept(own_pushgateway: StartPushgateway) -> None:
    behind = own_pushgateway(["--web.route-prefix=/behind/proxy"])

    push(TEXT, push_target(f"{behind.url}/behind/proxy/"), "mail", 5.0)

    assert "404" in refusal(behind.url)


def test_a_gateway_says_what_it_did_not_like(pushgateway: Pushgateway) -> None:
    with pytest.raises(PushError, match=r"400 Bad Request: .*taskbatch|400 Bad Request: text format"):
        push(b"this is no metric\n", push_target(pushgateway.url), "mail", 5.0)

    assert pushgateway.groups() == []


def test_a_proxy_of_the_environment_is_not_used(
    pushgateway: Pushgateway, raw: StartRaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = raw(says(OK))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)

    push(TEXT, push_target(pushgateway.url), "mail", 5.0)

    assert len(pushgateway.groups()) == 1
    assert proxy.requests == []


# Credentials


def test_login(own_pushgateway: StartPushgateway) -> None:
    # The password is "s3cret".
    secret_hash = "$2b$05$abcdefghijklmnopqrstuuLK7U1u6pVRmL7L1BBM2aS35PSZnDXlK"
    closed = own_pushgateway(web_config=f"basic_auth_users:\n  me: {secret_hash}\n")

    assert "401 Unauthorized" in refusal(closed.url)
    assert "401 Unauthorized" in refusal(closed.url, user="me", password="wrong")
    push(TEXT, push_target(closed.url, user="me", password="s3cret"), "mail", 5.0)
    push(TEXT, push_target(closed.url.replace("//", "//me:s3cret@")), "mail", 5.0)


def test_what_is_sent(raw: StartRaw) -> None:
    one = raw(says(OK))

    push(TEXT, push_target(one.url + "/base", token="s3cret"), "mail", 5.0)

    head, _, body = one.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "PUT /base/metrics/job/taskbatch/queue/mail HTTP/1.1"
    assert f"Host: 127.0.0.1:{one.port}" in lines
    assert "Authorization: Bearer s3cret" in lines
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in lines
    assert body == TEXT


def test_no_credentials_no_header(raw: StartRaw) -> None:
    one = raw(says(OK))

    push(TEXT, push_target(one.url), "mail", 5.0)

    assert b"authorization" not in one.requests[0].lower()


def test_a_redirect_gets_neither_metrics_nor_credentials(raw: StartRaw) -> None:
    elsewhere = raw(says(OK))
    answer = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere.url}/x\r\nContent-Length: 0\r\n\r\n"
    one = raw(says(answer.encode()))

    text = refusal(one.url, user="me", password="s3cret")

    assert text == f"{one.url}: 307 Temporary Redirect (redirects are not followed)"
    assert elsewhere.requests == []


def test_an_answer_that_repeats_the_secret_is_redacted(raw: StartRaw) -> None:
    answer = b"HTTP/1.1 401 No s3cret\r\n\r\nnot s3cret nor bWU6czNjcmV0, me\nsecond line"

    text = refusal(raw(says(answer)).url, user="me", password="s3cret")

    assert text.endswith(": 401 No ***: not *** nor ***, me")


def test_debugging_of_http_shows_no_header(
    raw: StartRaw, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("http.client.HTTPConnection.debuglevel", 1)

    push(TEXT, push_target(raw(says(OK)).url, token="s3cret"), "mail", 5.0)

    assert capfd.readouterr() == ("", "")


# Answers that are refusals


def test_of_a_refusal_the_first_line_is_shown_bounded_and_harmless(raw: StartRaw) -> None:
    answer = b"HTTP/1.1 500 Oh\x1b[2J\r\n\r\n\r\n  bad\x1b[31m\xff " + b"x" * 5000 + b"\nsecond"

    text = refusal(raw(says(answer)).url)

    assert r"500 Oh\x1b[2J: bad\x1b[31m" in text
    assert text.endswith("xxx…")
    assert len(text) < 300


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc Accepted\r\n\r\n",
        b"HTTP/1.1 202 " + b"x" * 100_000,
        b"HTTP/1.1 202 Accepted\r\n" + b"a: b\r\n" * 1000,
        b"HTTP/1.1 202 Accepted\r\na: " + b"b" * 100_000,
    ],
)
def test_what_is_not_http_is_an_error(raw: StartRaw, answer: bytes) -> None:
    refusal(raw(says(answer)).url)


def test_refused_and_unknown_hosts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    assert refusal(f"http://127.0.0.1:{port}") == f"http://127.0.0.1:{port}: Connection refused"
    assert refusal("http://nobody.invalid:9091").startswith("http://nobody.invalid:9091: ")


# One deadline


def drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 202 Accepted\r\n")
    while True:
        connection.sendall(b"a: b\r\n"[:1])
        time.sleep(0.02)


def continue_for_ever(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.02)


def black_hole(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize("serve", [drip, continue_for_ever, black_hole])
def test_a_gateway_that_takes_its_time_is_left_at_the_deadline(
    raw: StartRaw, serve: Callable[[socket.socket], None]
) -> None:
    one = raw(serve)

    assert refusal(one.url, timeout=0.5) == f"{one.url}: no answer within 0.5 s"
    # The connection is closed, too, and the thread has gone with it.
    assert one.ended.wait(2.0)
    assert no_push_thread_is_left()


def no_push_thread_is_left() -> bool:
    until = time.monotonic() + 2.0
    while any(thread.name == "taskbatch-push" for thread in threading.enumerate()):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_a_gateway_that_does_not_even_read(raw: StartRaw) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(PushError, match="no answer within"):
            push(b"x" * 50_000_000, push_target(url), "mail", 0.5)
        assert no_push_thread_is_left()


def test_a_tls_gateway_that_never_shakes_hands() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        assert refusal(url, timeout=0.5) == f"{url}: no answer within 0.5 s"
        assert no_push_thread_is_left()


def test_a_name_server_that_takes_its_time_and_then_answers(raw: StartRaw, monkeypatch: pytest.MonkeyPatch) -> None:
    one, resolve, answered = raw(says(OK)), socket.getaddrinfo, threading.Event()

    def slow(*args: object, **options: object) -> object:
        time.sleep(0.6)
        answered.set()
        return resolve(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    refusal(one.url, timeout=0.2)

    # What it would send now is old: nothing is.
    assert answered.wait(2.0)
    assert no_push_thread_is_left()
    assert [request for request in one.requests if request] == []


def test_no_time_left_sends_nothing(raw: StartRaw) -> None:
    one = raw(says(OK))

    assert refusal(one.url, timeout=0.0) == f"{one.url}: no time left"
    assert one.requests == []


def test_a_default_timeout_that_a_job_set_does_not_matter(
    pushgateway: Pushgateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.000001)
    try:
        push(TEXT, push_target(pushgateway.url), "mail", 5.0)
    finally:
        socket.setdefaulttimeout(before)


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a CA, and a certificate for 127.0.0.1 that it signed."""
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for command in (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca",
        "openssl req -newkey rsa:2048 -nodes -keyout gw.key -out gw.csr -subj /CN=gateway",
        "openssl x509 -req -in gw.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out gw.pem -extfile names",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True, timeout=60)
    return folder


def test_tls_with_a_ca_file(own_pushgateway: StartPushgateway, certificates: Path) -> None:
    files = f"cert_file: {certificates}/gw.pem\n  key_file: {certificates}/gw.key"
    secure = own_pushgateway(web_config=f"tls_server_config:\n  {files}\n")
    url = secure.url.replace("http:", "https:")

    push(TEXT, push_target(url, ca_file=f"{certificates}/ca.pem"), "mail", 5.0)

    assert "certificate verify failed" in refusal(url)
    assert "certificate verify failed" in refusal(
        url.replace("127.0.0.1", "localhost"), ca_file=f"{certificates}/ca.pem"
    )
    assert "400 Bad Request" in refusal(secure.url)


def test_a_ca_file_that_is_none(certificates: Path) -> None:
    missing, other = f"{certificates}/missing.pem", f"{certificates}/gw.key"

    assert refusal("https://gw", ca_file=missing) == f"https://gw: CA file {missing}: No such file or directory"
    assert f"CA file {other}: " in refusal("https://gw", ca_file=other)


def test_a_tls_gateway_that_drips(raw: StartRaw, certificates: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "gw.pem", certificates / "gw.key")
    one = raw(drip, context)

    text = refusal(one.url, timeout=0.5, token="s3cret", ca_file=f"{certificates}/ca.pem")

    assert text == f"{one.url}: no answer within 0.5 s"
    assert b"Bearer s3cret" in one.requests[0]
    assert no_push_thread_is_left()


def test_a_push_logs_nothing_by_itself(pushgateway: Pushgateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    push(TEXT, push_target(pushgateway.url), "mail", 5.0)

    assert caplog.messages == []
