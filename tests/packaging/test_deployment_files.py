"""The files for deployment are ones that their own programs accept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def installed(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not installed")
    return str(path)


def test_prometheus_accepts_its_configuration() -> None:
    promtool = installed("promtool")

    done = subprocess.run(
        [promtool, "check", "config", "prometheus.yml"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_scrape_keeps_the_labels_that_were_pushed() -> None:
    assert "honor_labels: true" in (ROOT / "prometheus.yml").read_text()


def test_the_image_starts_the_program_itself_and_not_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()

    # In the shell form a shell would be process 1, and would keep the signals to itself.
    assert 'ENTRYPOINT ["taskbatch"]' in lines
    assert any(re.fullmatch(r"USER [1-9]\d*:[1-9]\d*", line) for line in lines)


@pytest.mark.parametrize("script", ["run", "setup-system", "setup-venv", "verify"])
def test_ci_scripts_are_executable_and_stop_at_the_first_error(script: str) -> None:
    path = ROOT / ".ci" / script

    assert os.access(path, os.X_OK)
    assert "\nset -euo pipefail\n" in path.read_text()
    subprocess.run(["bash", "-n", path], check=True)
