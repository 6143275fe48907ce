"""Where it was measured: machine, load, versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import redis

PACKAGES = ("taskbatch", "redis", "hiredis", "protobuf", "click", "prometheus-client")


def environment(client: redis.Redis) -> dict[str, str]:
    """Return what a figure is worth nothing without."""
    return {
        "cpu": f"{os.cpu_count()} x {cpu_model(Path('/proc/cpuinfo'))}",
        "system": f"{platform.system()} {platform.release()}",
        "load": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
        "python": f"{platform.python_version()} ({platform.python_compiler()})",
        "server": f"redis {client.info('server')['redis_version']}",
        **{package: _version(package) for package in PACKAGES},
    }


def cpu_model(path: Path) -> str:
    """Return the name of the processor in a file like /proc/cpuinfo."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
