"""What is in the source archive and in the wheel, and that an install of any kind finds its Lua files."""

from __future__ import annotations

import json
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.packaging.conftest import ROOT, call, environment_with

if TYPE_CHECKING:
    from pathlib import Path

LUA_FILES = {path.relative_to(ROOT / "lua").as_posix(): path.read_text() for path in (ROOT / "lua").rglob("*.lua")}

READ_ALL_LUA = """
import json
from importlib.resources import files

def walk(folder, prefix=""):
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from walk(entry, prefix + entry.name + "/")
        elif entry.name.endswith(".lua"):
            yield prefix + entry.name, entry.read_text()

print(json.dumps(dict(walk(files("taskbatch.lua")))))
"""


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_the_wheel_holds_the_whole_package(wheel: Path) -> None:
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "taskbatch").rglob("*.py*")}
    modules = {name for name in modules if "__pycache__" not in name}
    lua = {f"taskbatch/lua/{name}" for name in LUA_FILES}

    missing = (modules | lua | {"taskbatch/py.typed", "taskbatch/lua/__init__.py"}) - names(wheel)

    assert missing == set()


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names(wheel)}

    assert tops == {"taskbatch", "taskbatch-0.1.0.dist-info"}


def test_the_wheel_is_the_same_from_the_tree_and_from_the_source_archive(wheel: Path, direct_wheel: Path) -> None:
    assert names(wheel) == names(direct_wheel)


def test_the_source_archive_holds_what_a_packager_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}

    expected = {
        "LICENSE",
        "Makefile",
        "README.md",
        "lua/__init__.py",
        "proto/taskbatch/v1/task.proto",
        "pyproject.toml",
        "tests/conftest.py",
    }
    assert expected - held == set()
    assert {f"lua/{name}" for name in LUA_FILES} - held == set()


@pytest.mark.parametrize("form", ["wheel", "direct_wheel", "editable_wheel"])
def test_every_lua_file_can_be_read_after_an_install(request: pytest.FixtureRequest, tmp_path: Path, form: str) -> None:
    python = environment_with(request.getfixturevalue(form), tmp_path / "environment")

    read = json.loads(call(python, "-c", READ_ALL_LUA, cwd=tmp_path))

    assert read == LUA_FILES


def test_example_jobs_stay_out_of_an_install(wheel: Path, tmp_path: Path) -> None:
    python = environment_with(wheel, tmp_path / "environment")

    find = "import importlib.util; print(importlib.util.find_spec('jobs'))"

    assert call(python, "-c", find, cwd=tmp_path) == "None\n"


def test_the_console_script_is_installed(wheel: Path, tmp_path: Path) -> None:
    python = environment_with(wheel, tmp_path / "environment")

    script = python.with_name("taskbatch").read_text()

    assert "from taskbatch.cli import main" in script
