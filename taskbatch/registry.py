"""The jobs a run knows: found as attributes of modules, checked, and looked up by exact name.

Nothing registers itself. `load_jobs` imports what it is told to, collects the `Job` values it sees there,
and answers everything that is wrong with one line that names the place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from taskbatch.checks import refuse
from taskbatch.declaration import Job, RateLimit
from taskbatch.entry_points import job_entry_points
from taskbatch.errors import ConfigError
from taskbatch.importing import ModuleMissingError, import_spec, put_current_directory_last, shown_path

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Job", "RateLimit", "Registry", "load_jobs"]

DEFAULT_SPEC = "jobs"


class Registry(Mapping[str, Job]):
    """Jobs by name; does not change. Raises ConfigError for jobs that cannot live together."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs: dict[str, Job] = {}
        for job in jobs:
            known = self._jobs.setdefault(job.name, job)
            if known is not job:
                places = f"{shown_path(known.place)} and {shown_path(job.place)}"
                refuse(f"two jobs are named {job.name!r}: {places}")
        for job in self._jobs.values():
            _check_binding(job)
        _check_limits(self._jobs.values())

    def __getitem__(self, name: str) -> Job:
        return self._jobs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._jobs)})"


def load_jobs(specs: Sequence[str] = (DEFAULT_SPEC,), *, entry_points: bool = True) -> Registry:
    """Import every spec and return the jobs in them, and those of installed packages if `entry_points`.

    A spec is the name of a module (`my.pkg.jobs`) or the path of a file or directory (`./jobs`, `send.py`).
    A package comes with all its submodules. Modules are looked for in the current directory last.
    Raises ConfigError: a spec is missing, does not import or holds no job; no jobs at all; jobs that clash.
    That `jobs`, the default, is missing is no error if installed packages bring jobs.
    """
    put_current_directory_last()
    jobs = _entry_point_jobs() if entry_points else []
    for spec in specs:
        try:
            modules = import_spec(spec)
        except ModuleMissingError:
            if spec == DEFAULT_SPEC and jobs:
                continue
            raise
        found = [job for module in modules for job in _jobs_in(module)]
        if not found:
            refuse(f"no jobs in {spec!r} ({_home(modules[0])}): a job is a function under @job(...)")
        jobs += found
    if not jobs:
        refuse("no jobs: name a module or a path with --jobs, or install a package that brings some")
    return Registry(jobs)


def _jobs_in(module: ModuleType) -> list[Job]:
    return [value for value in vars(module).values() if isinstance(value, Job)]


def _entry_point_jobs() -> list[Job]:
    jobs: list[Job] = []
    for point in job_entry_points():
        where = f"entry point {point.name!r} = {point.value!r}"
        try:
            modules = import_spec(point.module)
        except ConfigError as error:
            msg = f"{where}: {error}"
            raise ConfigError(msg) from error
        if point.attr:
            named = getattr(modules[0], point.attr, None)
            found = [named] if isinstance(named, Job) else []
        else:
            found = [job for module in modules for job in _jobs_in(module)]
        if not found:
            refuse(f"{where}: no job there")
        jobs += found
    return jobs


def _check_binding(job: Job) -> None:
    try:
        _ = job.binding
    except ConfigError as error:
        msg = f"{shown_path(job.place)}: job {job.name!r}: {error}"
        raise ConfigError(msg) from error


def _check_limits(jobs: Iterable[Job]) -> None:
    """Two jobs that share a limit must agree what it is: its state in Redis knows only one."""
    first: dict[str, Job] = {}
    for job in jobs:
        if job.rate_limit is None:
            continue
        other = first.setdefault(job.limit_name, job)
        if other.rate_limit is not None and _terms(other.rate_limit) != _terms(job.rate_limit):
            names = f"{other.name!r} and {job.name!r}"
            refuse(f"jobs {names} share the rate limit {job.limit_name!r} but do not agree on its terms")


def _terms(rate_limit: RateLimit) -> tuple[object, ...]:
    return rate_limit.limit, rate_limit.period, rate_limit.algorithm, rate_limit.burst, rate_limit.per_key


def _home(module: ModuleType) -> str:
    return shown_path(getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ["?"]))))
