"""docs/guarantees.md names the tests that hold each promise."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (?!promise|---)(.+?) \| (.+) \|$", (ROOT / "docs/guarantees.md").read_text(), re.MULTILINE)
    defined = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }

    named = {promise: re.findall(r"`(test_\w+)`", tests) for promise, tests in rows}

    assert len(named) == 17
    assert all(named.values())
    assert {test for tests in named.values() for test in tests} - defined == set()
