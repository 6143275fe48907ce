"""The command line itself: verbs, global options, usage errors, exit codes. No server is needed here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from taskbatch import __version__
from taskbatch.cli.failure import CODES, MEANINGS, FailedError, PartlyError, code_of, complain
from taskbatch.cli.program import VERBS, program, run
from taskbatch.cli.session import Session
from taskbatch.errors import ConfigError, DoubtError, ExitCode, RefusedError, TaskbatchError, UnreachableError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TASKBATCH_REDIS_URL", "REDIS_URL", "TASKBATCH_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_importing_the_command_line_imports_nothing_costly() -> None:
    code = """
import sys, taskbatch.cli
assert "click" not in sys.modules
import taskbatch.cli.program, taskbatch.cli.run
costly = ("redis", "prometheus_client", "google.protobuf", "asyncio", "pathlib")
print([name for name in costly if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, env=path())
    assert done.stdout == "[]\n", done.stderr


def path() -> dict[str, str]:
    """Return an environment without `site`, whose .pth files import what they like."""
    return {"PYTHONPATH": ":".join([str(ROOT), *sys.path])}


def test_every_verb_has_help_with_an_example(capfd: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS:
        assert run([verb, "--help"]) == 0
        assert f"  taskbatch {verb}" in capfd.readouterr().out.partition("Options:")[2] or verb == "demo"


def test_help_names_the_variable_of_every_option_of_run(capfd: pytest.CaptureFixture[str]) -> None:
    run(["run", "-h"])
    shown = capfd.readouterr().out
    for option in re.findall(r"--[a-z-]+", shown):
        if option != "--help":
            assert "TASKBATCH_" + option[2:].upper().replace("-", "_") in shown


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"taskbatch {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Missing command"),
        (["nope"], "No such command 'nope'"),
        (["run", "--nope"], "No such option:? '?--nope"),
        (["run", "--wait", "5"], "a unit is missing"),
        (["run", "--lease", "1s"], "--lease must be at least 3s"),
        (["run", "-n", "0"], "not a whole number from 1"),
        (["run", "-q", "a b"], "queue name 'a b'"),
        (["run", "-q", "a", "-q", "a"], "a queue is named twice"),
        (["run", "--prefix", "{x}"], "key prefix"),
        (["run", "--wait", "10m"], "--wait is longer than --max-runtime"),
        (["run", "--fail-on", "sometimes"], "sometimes"),
        (["run", "--redis-url", ""], "must not be empty"),
        (["run", "--pushgateway", ""], "must not be empty"),
        (["enqueue"], "Missing argument 'TYPE'"),
        (["enqueue", "x", "{"], "the payload is not JSON: .* at column 2"),
        (["enqueue", "x", "NaN"], "NaN is not a value"),
        (["enqueue", "x", "1e999"], "too large"),
        (["enqueue", "a b"], "task type 'a b'"),
        (["enqueue", "x", "--header", "k"], "write NAME=VALUE"),
        (["enqueue", "x", "--raw"], "--raw needs --file"),
        (["enqueue", "x", "-", "--unique-key", "k"], "--unique-key is for one task"),
        (["enqueue", "x", "--file", "missing"], "missing"),
        (["queue", "limit", "many"], "rate limit 'many'"),
        (["queue", "purge", "--state", "all"], "all"),
        (["dead", "redrive"], "or say --all"),
        (["dead", "redrive", "1-1", "--all"], "or say --all"),
        (["dead", "list", "--limit", "0"], "not a whole number"),
        (["metrics", "-q", "ä"], "queue name"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(
    capfd: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(arguments) == 2

    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert re.match(rf"taskbatch: error: .*{says}.*\(try 'taskbatch.* --help'\)$", err)


def test_a_variable_can_be_wrong_as_well(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKBATCH_MAX_RUNTIME", "soon")
    assert run(["run"]) == 2
    assert "'--max-runtime'" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--prefix", "p", "--jobs", "a", "--jobs", "b", "-v", "probe"],
        ["probe", "--prefix", "p", "--jobs", "a", "--jobs", "b", "-v"],
        ["--prefix", "other", "-v", "probe", "--jobs", "a", "--jobs", "b", "--prefix", "p"],
    ],
)
def test_global_options_may_stand_on_either_side_of_the_verb(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = probed(arguments, monkeypatch)
    assert (session.prefix, session.jobs, session.verbose) == ("p", ("a", "b"), 1)


def test_global_options_have_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKBATCH_JOBS", "a, b")
    monkeypatch.setenv("TASKBATCH_PREFIX", "p")
    monkeypatch.setenv("TASKBATCH_QUIET", "1")
    session = probed(["probe", "--prefix", "q"], monkeypatch)
    assert (session.jobs, session.prefix, session.quiet) == (("a", "b"), "q", True)


def probed(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return the session after a command line with the verb `probe`, which does nothing."""
    from taskbatch.cli.verb import Verb  # noqa: PLC0415 - here only

    monkeypatch.setattr(Session, "start_logging", lambda _self: None)
    command = Verb("probe", callback=lambda: None)
    monkeypatch.setattr(type(program), "get_command", lambda *_: command)
    session = Session()
    assert run(arguments, session) == 0
    return session


def test_the_redis_url_comes_from_the_option_then_its_variable_then_redis_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Session().redis_settings().url == "redis://localhost:6379/0"
    monkeypatch.setenv("REDIS_URL", "redis://third")
    assert Session().redis_settings().url == "redis://third"
    (tmp_path / "url").write_text("redis://second\n")
    monkeypatch.setenv("TASKBATCH_REDIS_URL_FILE", str(tmp_path / "url"))
    assert Session().redis_settings().url == "redis://second"
    monkeypatch.setenv("TASKBATCH_REDIS_USER", "somebody")
    assert Session().redis_settings().username == "somebody"
    assert Session(redis_url="redis://first").redis_settings().url == "redis://first"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 78),
        (UnreachableError("x"), 69),
        (RefusedError("x"), 69),
        (DoubtError("x"), 75),
        (KeyboardInterrupt(), 75),
        (click.Abort(), 75),
        (FailedError("x"), 1),
        (click.UsageError("x"), 2),
        (TaskbatchError("x"), 70),
        (ValueError("x"), 70),
        (PartlyError("x; 5 were", UnreachableError("x")), 69),
    ],
)
def test_errors_have_exit_codes(error: BaseException, code: int) -> None:
    assert code_of(error) == code


def test_every_exit_code_is_explained() -> None:
    assert set(MEANINGS) == set(ExitCode)
    assert set(CODES.values()) <= set(ExitCode)


def test_an_error_is_one_escaped_line_without_secrets(capfd: pytest.CaptureFixture[str]) -> None:
    session = Session()
    session.redact.learn("p4ssword")
    complain(session, ConfigError("bad\n\x1b[2J p4ssword"))
    assert capfd.readouterr().err == "taskbatch: error: bad\\n\\x1b[2J ***\n"


def test_an_unexpected_error_says_where_and_shows_more_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError) as caught:
        _ = {}["oops"]

    for verbose in (0, 1):
        assert complain(Session(verbose=verbose), caught.value) == 70
        *trace, line = capfd.readouterr().err.splitlines()
        assert re.fullmatch(r"taskbatch: error: internal error: KeyError: 'oops' \(.*test_cli_program.py:\d+\)", line)
        assert bool(trace) == bool(verbose)


def test_the_documented_exit_codes_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs/cli.md").read_text(), re.MULTILINE)
    assert [int(row) for row in rows] == [int(code) for code in ExitCode]


def test_every_option_is_documented() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    context = click.Context(program)
    for verb in VERBS:
        command = program.get_command(context, verb)
        assert command is not None
        for name in options_of(command):
            assert re.search(rf"[` ]{name}\b", text), f"{verb} {name}"


def options_of(command: click.Command) -> set[str]:
    """Return the long options of a command and of what is below it."""
    found = {name for param in command.params for name in param.opts if name.startswith("--")}
    if isinstance(command, click.Group):
        for below in command.commands.values():
            found |= options_of(below)
    return found
