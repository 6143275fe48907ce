"""Builds and installs of a copy of this source tree, made once for all packaging tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_SOURCE = shutil.ignore_patterns(
    ".git", ".venv", "*_cache", ".hypothesis", "__pycache__", "node_modules", "build", "dist", "*.egg-info"
)


def call(*command: str | Path, cwd: Path | None = None) -> str:
    """Return what the command printed; a failure shows all of it."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_with(distribution: Path, directory: Path) -> Path:
    """Return the Python of a new virtual environment that holds this distribution and nothing else."""
    venv.create(directory, with_pip=False, symlinks=True)
    python = directory / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    call(*pip, "install", "--no-deps", "--no-index", "--no-build-isolation", distribution)
    return python


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree: a build leaves its traces beside the sources."""
    copy = tmp_path_factory.mktemp("source") / "taskbatch"
    shutil.copytree(ROOT, copy, ignore=NOT_SOURCE)
    return copy


@pytest.fixture(scope="session")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    call(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", out, source)
    return next(out.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it is published: built from the unpacked source archive."""
    out = tmp_path_factory.mktemp("wheel")
    unpacked = tmp_path_factory.mktemp("unpacked")
    call("tar", "-xzf", sdist, "-C", unpacked)
    tree = next(unpacked.iterdir())
    call(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, tree)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def direct_wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("direct")
    call(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, source)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def editable_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install -e` installs, for a tree of its own that stays where it is."""
    tree = tmp_path_factory.mktemp("editable") / "taskbatch"
    shutil.copytree(ROOT, tree, ignore=NOT_SOURCE)
    out = tmp_path_factory.mktemp("editable-wheel")
    hook = "import sys, setuptools.build_meta as backend; backend.build_editable(sys.argv[1])"
    call(sys.executable, "-c", hook, out, cwd=tree)
    return next(out.glob("*.whl"))
