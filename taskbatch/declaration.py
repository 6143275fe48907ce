"""How a job is declared: `@job("email.send", timeout=30, rate_limit=RateLimit("100/1m"))`.

Declaring registers nothing: a `Job` is a value, found later as an attribute of its module. Whatever is
wrong with a declaration raises ConfigError where it stands, in one line.

This module is not called `job`: importing a submodule of that name would put it in the place of the
decorator in `from taskbatch import job`.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - a dataclass field; readers of the hints need it
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taskbatch.checks import check_name, is_count, is_positive, refuse
from taskbatch.ratelimit import RateLimit

__all__ = ["Backoff", "Job", "RateLimit", "job"]

if TYPE_CHECKING:
    from taskbatch.binding import Binding

DEFAULT_TIMEOUT = 300.0
DEFAULT_MAX_ATTEMPTS = 5

_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200


@dataclass(frozen=True)
class Backoff:
    """Seconds before a failed task is tried again: `base`, doubling up to `maximum`, with jitter."""

    base: float = 10.0
    maximum: float = 3600.0

    def __post_init__(self) -> None:
        if not (is_positive(self.base) and is_positive(self.maximum) and self.base <= self.maximum):
            refuse(f"backoff needs 0 < base <= maximum in seconds, not {self.base!r} and {self.maximum!r}")


@dataclass(frozen=True, eq=False)
class Job:
    """A named handler with its limits. Calling it calls the function, as if it had never been declared."""

    name: str
    function: Callable[..., Any]
    timeout: float = DEFAULT_TIMEOUT
    timeout_declared: bool = False
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    backoff: Backoff = Backoff()
    rate_limit: RateLimit | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
        """Call the job's function directly: nothing is decoded, limited or retried."""
        return self.function(*args, **kwargs)

    @property
    def limit_name(self) -> str:
        """Name under which its rate limit is counted."""
        return (self.rate_limit and self.rate_limit.name) or self.name

    @property
    def place(self) -> str:
        """`file:line` of the function, for messages."""
        code = getattr(self.function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)[:100]

    @cached_property
    def binding(self) -> Binding:
        """How a task becomes the function's arguments. Raises ConfigError for a signature no task can fill.

        Worked out when first asked for (at the latest when jobs are loaded), because an annotation may
        name a class that is defined further down in its module.
        """
        from taskbatch.binding import bind  # noqa: PLC0415 - a producer that imports jobs need not decode

        return bind(self.function)


def job(
    name: str,
    *,
    timeout: float | None = None,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    rate_limit: RateLimit | None = None,
    backoff: Backoff | None = None,
) -> Callable[[Callable[..., Any]], Job]:
    """Declare the function below as the job of all tasks of type `name`.

    `timeout` is in seconds (without it 300, and then a run does not check whether that fits into its
    remaining time); `max_attempts` counts the first try. Raises ConfigError.
    """
    check_name("job name", name)
    if timeout is not None and not is_positive(timeout):
        refuse(f"job {name!r}: timeout is a number of seconds above 0, not {timeout!r}")
    if not is_count(max_attempts):
        refuse(f"job {name!r}: max_attempts is a whole number from 1, not {max_attempts!r}")
    if rate_limit is not None and not isinstance(rate_limit, RateLimit):
        refuse(f"job {name!r}: rate_limit is a RateLimit, as in RateLimit('100/1m'), not {rate_limit!r}")
    if backoff is not None and not isinstance(backoff, Backoff):
        refuse(f"job {name!r}: backoff is a Backoff, not {backoff!r}")

    def declare(function: Callable[..., Any]) -> Job:
        _check_function(name, function)
        return Job(
            name=name,
            function=function,
            timeout=DEFAULT_TIMEOUT if timeout is None else float(timeout),
            timeout_declared=timeout is not None,
            max_attempts=max_attempts,
            backoff=backoff or Backoff(),
            rate_limit=rate_limit,
        )

    return declare


def _check_function(name: str, function: object) -> None:
    if isinstance(function, Job):
        refuse(f"job {name!r}: the function is already the job {function.name!r}; one function, one name")
    if not callable(function):
        refuse(f"job {name!r}: {str(function)[:60]} cannot be called")
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    # Calling one of these runs nothing: each task would be acked without having been done.
    if flags & (_COROUTINE | _ASYNC_GENERATOR):
        refuse(f"job {name!r}: an async function cannot be a job; call asyncio.run() in a plain one")
    if flags & _GENERATOR:
        refuse(f"job {name!r}: a generator cannot be a job: its body would never run")
