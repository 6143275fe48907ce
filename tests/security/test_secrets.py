"""A canary password goes through every path that fails, as loud as it gets, and is found nowhere."""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from taskbatch.failure import MAX_ERROR, error_text
from taskbatch.logs import MAX_LINE, JsonFormatter, Redactor, TextFormatter
from tests.batches import task
from tests.daemon import free_port
from tests.security import canary
from tests.security.canary import BASIC, ENCODED, MARK, PASSWORD, TOKEN, USER, quiet_about_it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import StartServer
    from tests.program import Cli
    from tests.servers import Server

LEAKS = str(Path(__file__).with_name("leaks.py"))
WAYS = ["url", "variable", "file", "url file", "query"]


@pytest.fixture
def locked(own_server: StartServer) -> Server:
    """A server that wants the canary."""
    return own_server(requirepass=PASSWORD)


@pytest.fixture
def locked_out(own_server: StartServer) -> Server:
    """A server that wants another password."""
    return own_server(requirepass="something else")


def given(way: str, port: int, tmp_path: Path) -> dict[str, str]:
    """Return variables that name the server on `port` and the canary, in one of the ways there are."""
    plain, with_password = f"redis://127.0.0.1:{port}/0", f"redis://:{ENCODED}@127.0.0.1:{port}/0"
    return {
        "url": {"REDIS_URL": with_password},
        "variable": {"TASKBATCH_REDIS_URL": plain, "TASKBATCH_REDIS_PASSWORD": PASSWORD},
        "file": {
            "TASKBATCH_REDIS_URL": plain,
            "TASKBATCH_REDIS_PASSWORD_FILE": canary.secret_file(tmp_path, PASSWORD),
        },
        "url file": {"TASKBATCH_REDIS_URL_FILE": canary.secret_file(tmp_path, with_password)},
        "query": {"TASKBATCH_REDIS_URL": f"{plain}?password={ENCODED}"},
    }[way]


class EchoingGateway:
    """Refuses every push, and quotes all it was told."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = f"refused: {self.headers['Authorization']} {BASIC} {PASSWORD}".encode()
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(401, f"no {TOKEN}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def gateway() -> Iterator[EchoingGateway]:
    gateway = EchoingGateway()
    yield gateway
    gateway.close()


# -- no connection ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_password_works_in_every_form(cli: Cli, locked: Server, tmp_path: Path, way: str) -> None:
    assert cli("status", env=given(way, locked.port, tmp_path)).returncode == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_password(cli: Cli, locked_out: Server, tmp_path: Path, way: str) -> None:
    env = given(way, locked_out.port, tmp_path)

    quiet_about_it(cli, "run", "--jobs", LEAKS, "--report", "json", env=env, code=78, says="invalid username")


@pytest.mark.parametrize("way", WAYS)
def test_nobody_there(cli: Cli, tmp_path: Path, way: str) -> None:
    env = given(way, free_port(), tmp_path)

    # Once is enough: each time it goes on trying for two seconds.
    result = cli("reap", "-v", "-v", env=env)

    assert result.returncode == 69
    assert "cannot reach Redis" in result.stderr
    canary.check(result.stderr)


def test_a_server_that_quotes_what_it_does_not_understand(cli: Cli, own_server: StartServer, tmp_path: Path) -> None:
    server = own_server(extra=["--rename-command", "AUTH", "LOGIN"])
    # Longer than what Redis quotes: its beginning is as secret as the whole.
    env = {"TASKBATCH_REDIS_URL": server.url, "TASKBATCH_REDIS_PASSWORD": f"{MARK}{'x' * 200}"}

    quiet_about_it(cli, "run", "--jobs", LEAKS, env=env, code=78, says="unknown command 'AUTH'")


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:p@ss/{MARK}@host:port/",
        f"redis://:p#{MARK}@host",
        f"redis://:p?{MARK}@host",
        f"redis://me:{MARK}:{MARK}@host:{MARK}",
        f"redis://[:{MARK}@host",
        f"redis://:{MARK}@host:99999999/0",
        f"redis://:{MARK}\u2100@host",
        f"redis://:{MARK}@host/0?db={MARK[:1]}",
        f"redis://:{MARK}@host/?decode_responses=true",
        f"http://:{MARK}@host",
        f"redis:{MARK}@host",
        f"me:{MARK}@host",
    ],
)
def test_a_url_that_cannot_be_used(cli: Cli, url: str) -> None:
    quiet_about_it(cli, "run", "--jobs", LEAKS, env={"TASKBATCH_REDIS_URL": url}, code=78, says="Redis URL")


@pytest.mark.parametrize("url", [f"http://:p@ss/{MARK}@gw", f"http://me:{MARK}@gw:x", f"ftp://me:{MARK}@gw", MARK])
def test_a_gateway_that_cannot_be_used(cli: Cli, server: Server, url: str) -> None:
    env = {"TASKBATCH_REDIS_URL": server.url, "TASKBATCH_PUSHGATEWAY": url}

    quiet_about_it(cli, "run", "--jobs", LEAKS, "--report", "json", env=env, code=78, says="pushgateway")


def test_a_secret_that_is_not_where_it_belongs(cli: Cli) -> None:
    quiet_about_it(cli, "run", f"redis://me:{MARK}@host/0", code=2, says="unexpected extra argument")


def test_a_file_that_is_not_text(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(f"{MARK}\xff".encode("latin-1"))

    quiet_about_it(cli, "run", env={"TASKBATCH_REDIS_PASSWORD_FILE": str(path)}, code=78, says="not UTF-8")


# -- jobs that see the same environment -------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_what_a_job_says_is_kept_and_shown_without_it(cli: Cli, locked: Server, tmp_path: Path, way: str) -> None:
    textfile = tmp_path / "taskbatch.prom"
    env = given(way, locked.port, tmp_path) | {"TASKBATCH_JOBS": LEAKS, "TASKBATCH_TEXTFILE": str(textfile)}
    env |= {"TASKBATCH_PUSHGATEWAY": f"http://127.0.0.1:{free_port()}", "TASKBATCH_PUSHGATEWAY_TOKEN": TOKEN}
    client = locked.client()
    ways = ["plain", "quoted", "json", "encoded", "cut", "cut by the log"]
    raws = [task(job, f"{job}-{i}", payload=json.dumps(way).encode()) for job in ("tell", "tell.later", "log")
            for i, way in enumerate(ways)]  # fmt: skip

    for loud in canary.LOUD:
        client.lpush("taskbatch:{default}:pending", *raws)
        result = cli("run", "--wait", "0s", "--report", "json", *loud, env=env)

        assert result.returncode == 0, result.stderr
        assert (result.json()["dead"], result.json()["retried"], result.json()["succeeded"]) == (6, 6, 6)
        canary.check(result.stdout, result.stderr)
    for report in ("text", "github"):
        client.lpush("taskbatch:{default}:pending", *raws)
        canary.check(cli("run", "--wait", "0s", "--report", report, env=env).stdout)

    canary.check(canary.everything(client), textfile.read_text(), cli("metrics", env=env).stdout)
    assert "TellingError: " in canary.everything(client)
    for arguments in (["list"], ["list", "--json"], ["show", "tell-1"], ["show", "tell-4", "--json"]):
        shown = cli("dead", *arguments, env=env)
        assert shown.returncode == 0
        canary.check(shown.stdout, shown.stderr)


@pytest.mark.parametrize("verb", [["run"], ["jobs", "check"], ["jobs", "list"]])
def test_a_module_that_does_not_import(cli: Cli, locked: Server, tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "broken.py").write_text("import os\nraise ValueError(os.environ['TASKBATCH_REDIS_PASSWORD'])\n")
    env = given("variable", locked.port, tmp_path)

    quiet_about_it(cli, *verb, "--jobs", str(tmp_path / "broken.py"), env=env, code=78, says="ValueError: ***")


def test_an_internal_error(cli: Cli, locked: Server, tmp_path: Path) -> None:
    (tmp_path / "breaking.py").write_text(
        "import os\n"
        "from taskbatch import job\n"
        "from taskbatch.runner import Runner\n"
        "def broken(self):\n"
        "    raise RuntimeError(repr(self._exchange) + os.environ['TASKBATCH_REDIS_PASSWORD'])\n"
        "Runner._step = broken\n"
        "@job('nothing')\n"
        "def nothing(): pass\n"
    )
    env = given("variable", locked.port, tmp_path)
    arguments = ["run", "--jobs", str(tmp_path / "breaking.py"), "--report", "json"]

    quiet_about_it(cli, *arguments, env=env, code=70, says="internal error: RuntimeError")


# -- the gateway ------------------------------------------------------------------------------------------------


def _apart(place: str, tmp_path: Path) -> dict[str, str]:
    return {
        "TASKBATCH_PUSHGATEWAY": f"http://{place}",
        "TASKBATCH_PUSHGATEWAY_USER": USER,
        "TASKBATCH_PUSHGATEWAY_PASSWORD_FILE": canary.secret_file(tmp_path, PASSWORD),
    }


def _token(place: str, tmp_path: Path) -> dict[str, str]:
    return {
        "TASKBATCH_PUSHGATEWAY": f"http://{place}",
        "TASKBATCH_PUSHGATEWAY_TOKEN_FILE": canary.secret_file(tmp_path, TOKEN),
    }


def _in_url(place: str, _tmp_path: Path) -> dict[str, str]:
    return {"TASKBATCH_PUSHGATEWAY": f"http://{USER}:{ENCODED}@{place}"}


@pytest.mark.parametrize("login", [_apart, _token, _in_url])
def test_a_gateway_that_refuses_and_quotes(
    cli: Cli,
    server: Server,
    gateway: EchoingGateway,
    tmp_path: Path,
    login: Callable[[str, Path], dict[str, str]],
) -> None:
    # The gateway says it all: what it cannot know of this login, it must not be blamed on us.
    env = login(gateway.place, tmp_path) | {"TASKBATCH_REDIS_URL": server.url}
    env |= {"TASKBATCH_REDIS_PASSWORD": "", "TASKBATCH_JOBS": LEAKS, "TASKBATCH_WAIT": "0s"}
    secret = [TOKEN] if login is _token else [PASSWORD, ENCODED, BASIC]

    for loud in canary.LOUD:
        result = cli("run", "--report", "json", *loud, env=env)

        assert result.returncode == 0, result.stderr
        assert result.json()["pushed"] is False
        assert "401" in result.stderr
        for form in secret:
            assert form not in result.stderr + result.stdout
    assert USER not in result.stderr
    assert MARK not in canary.everything(server.client())


def test_a_gateway_that_is_not_there(cli: Cli, server: Server, tmp_path: Path) -> None:
    env = _apart(f"127.0.0.1:{free_port()}", tmp_path) | {"TASKBATCH_REDIS_URL": server.url}

    quiet_about_it(cli, "metrics", "--push", "-q", "default", env=env, code=1, says="metrics not pushed")


# -- how it is done ---------------------------------------------------------------------------------------------


def test_logins_in_urls_of_others_are_hidden_too() -> None:
    redact = Redactor()

    assert redact("see postgres://me:hush@db/x and http://me@host:1/a:b@c") == (
        "see postgres://***@db/x and http://me@host:1/a:b@c"
    )


def test_looking_for_logins_takes_no_time_to_speak_of() -> None:
    redact = Redactor()

    assert redact("a" * 1_000_000) == "a" * 1_000_000
    assert redact("://" * 300_000) == "://" * 300_000


@pytest.mark.parametrize("before", range(MAX_ERROR - 20, MAX_ERROR + 2))
def test_no_cut_leaves_a_part_of_a_secret(before: int) -> None:
    redact = Redactor()
    redact.learn("secret-and-more")

    assert "secr" not in error_text(ValueError("x" * before + "secret-and-more"), redact)
    for formatter in (TextFormatter(redact, live=True), JsonFormatter(redact)):
        text = "x" * (MAX_LINE - MAX_ERROR + before) + "secret-and-more"
        assert "secr" not in formatter.format(
            logging.makeLogRecord({"msg": text, "extra": text, "levelno": logging.INFO, "levelname": "INFO"})
        )


def test_a_secret_is_known_however_it_is_quoted() -> None:
    redact = Redactor()
    secret = "a'b\"c\\d\u00f6\U0001f600\n/"
    redact.learn(secret)

    quoted = [repr(secret), json.dumps(secret), repr(repr({"x": secret})), repr(json.dumps(secret)), quote(secret)]
    for text in (secret, *quoted):
        assert redact(text).strip("'\"{x: }\\") == "***", text


def test_the_longest_form_goes_first() -> None:
    redact = Redactor()
    redact.learn("secret", "secret-and-more")

    assert redact("secret-and-more secret") == "*** ***"
