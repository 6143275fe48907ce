"""docs/metrics.md says what the table of names says, and its rules can be loaded."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from taskbatch.metrics import names

DOCS = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()


def rows(header: str) -> list[list[str]]:
    table = DOCS.split(header, 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "`" in line]


def words(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def test_the_table_is_the_code() -> None:
    documented = [
        (*words(name), kind, words(labels), meaning)
        for name, kind, labels, meaning in rows("| name | type | labels | meaning |")
    ]

    assert documented == [(one.name, one.kind, one.labels, one.help) for one in names.FAMILIES]


def test_the_label_values_are_the_code() -> None:
    documented = {words(label)[0]: words(values) for label, values in rows("| label | values |")}

    assert documented == {
        "outcome": names.OUTCOMES,
        "action": names.ACTIONS,
        "result": names.RESULTS,
        "state": names.STATES,
        "type": ("unknown",),
    }


def test_names_are_unique_and_by_convention() -> None:
    every = [one.name for one in names.FAMILIES]

    assert len(set(every)) == len(every)
    for one in names.FAMILIES:
        assert one.name.startswith("taskbatch_")
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert one.labels[0] == "queue"


@pytest.mark.parametrize(("first_word", "check"), [("scrape_configs:", "config"), ("groups:", "rules")])
def test_the_examples_are_valid(tmp_path: Path, first_word: str, check: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    (example,) = re.findall(rf"```yaml\n({first_word}.*?)```", DOCS, re.DOTALL)
    (tmp_path / "example.yml").write_text(example)

    done = subprocess.run(
        ["promtool", "check", check, "example.yml"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 0, done.stdout + done.stderr
