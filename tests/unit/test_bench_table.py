"""How the benchmarks are printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.environment import cpu_model
from bench.load import NOOP, tasks
from bench.measure import Samples
from bench.questions import Answer
from bench.table import as_dict, as_text, number
from taskbatch.v1.task_pb2 import Task

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = Answer(
    "How long",
    base="by hand",
    compared="s",
    figures={"by hand": {"s": Samples([2.0, 2.0])}, "ours": {"s": Samples([1.0, 3.0, 1.0]), "tasks": Samples([5.0])}},
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.01234, "0.0123"), (12.345, "12.3"), (99.96, "100"), (123.4, "123"), (113972.4, "113,972")],
)
def test_three_digits_are_enough(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_table_shows_medians_spread_and_ratios() -> None:
    assert as_text(ANSWER).splitlines() == [
        "How long",
        "              by hand     ours",
        "  s                 2  1 [1-3]",
        "  tasks             -        5",
        "  ratio of s     1.00     0.50",
    ]


def test_json_has_every_single_value() -> None:
    found = json.loads(json.dumps(as_dict(ANSWER)))

    assert found["base"] == "by hand"
    assert found["candidates"]["ours"] == {
        "ratio": 0.5,
        "figures": {"s": {"median": 1.0, "values": [1.0, 3.0, 1.0]}, "tasks": {"median": 5.0, "values": [5.0]}},
    }


def test_the_processor_has_a_name(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Some Fast One\nprocessor\t: 1\nmodel name\t: Some Fast One\n")

    assert cpu_model(cpuinfo) == "Some Fast One"
    assert cpu_model(tmp_path / "missing") != ""


def test_the_load_is_tasks_that_a_run_accepts() -> None:
    first, second = (Task.FromString(raw) for raw in tasks(2, "bench.noop", NOOP))

    assert first.id != second.id
    assert (first.type, len(first.payload)) == ("bench.noop", 100)
