"""The programs that are measured: the installed `taskbatch`, and what a person would write by hand instead."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Usage, clean_environment, run

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Programs:
    """Programs that use the server at `url`, started in `directory`. Each raises what `measure.run` raises."""

    url: str
    directory: Path

    def taskbatch(self, *words: str) -> Usage:
        """Run the installed console script with the jobs that are measured."""
        script = Path(sys.executable).with_name("taskbatch")
        settings = {"TASKBATCH_REDIS_URL": self.url, "TASKBATCH_JOBS": str(HERE / "bench_jobs.py")}
        return run([str(script), *words], {**clean_environment(), **settings}, self.directory)

    def python(self, *words: str) -> Usage:
        """Run this interpreter."""
        return run([sys.executable, *words], clean_environment(), self.directory)

    def by_hand(self, name: str, *words: str) -> Usage:
        """Run one of `programs/` on the server."""
        return self.python(str(HERE / "programs" / f"{name}.py"), self.url, *words)
