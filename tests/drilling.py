"""The program with the jobs of tests/drill.py, and the ledger they write, which no crash can take back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.batches import eventually

if TYPE_CHECKING:
    from tests.program import Background, Cli, Result

JOBS = Path(__file__).with_name("drill.py")


class Drill:
    """Runs of the program on one server, `queue` being the default one."""

    def __init__(self, cli: Cli, url: str, directory: Path) -> None:
        self.cli = cli
        self.directory = directory
        self._ledger = directory / "ledger"
        cli.env.update(
            TASKBATCH_REDIS_URL=url, TASKBATCH_JOBS=str(JOBS), TASKBATCH_REPORT="json", DRILL_LEDGER=str(self._ledger)
        )

    def spawn(self, *arguments: str) -> Background:
        return self.cli.spawn(*arguments)

    def __call__(self, *arguments: str) -> Result:
        return self.cli(*arguments)

    @property
    def gate(self) -> Path:
        """The file that jobs of type `hold` wait for: its path is their payload."""
        return self.directory / "gate"

    def open_gate(self) -> None:
        self.gate.touch()

    def lines(self) -> list[str]:
        return self._ledger.read_text().splitlines() if self._ledger.exists() else []

    def starts(self) -> Counter[str]:
        """Return how often each task was started."""
        return Counter(line.split()[1] for line in self.lines() if line.startswith("start "))

    def wait_for(self, *lines: str) -> None:
        """Return when all of `lines` are in the ledger."""
        eventually(lambda: set(lines) <= set(self.lines()), f"{lines} in the ledger")
