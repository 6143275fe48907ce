"""How a task becomes the arguments of a job's function, read from its signature.

The first parameter is the payload and its annotation says as what; a parameter annotated `Task`, or named
`task` without another annotation, is the task. Either may be missing. Anything else needs a default.
"""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from taskbatch.checks import refuse
from taskbatch.conversion import UnsupportedError
from taskbatch.payload import decoder
from taskbatch.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskbatch.payload import Decode

_PAYLOAD, _TASK = "payload", "task"
_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Binding:
    """What to pass: `positional` in order, `keyword` by name, each of them "payload" or "task"."""

    decode: Decode | None
    positional: tuple[str, ...]
    keyword: dict[str, str]

    def arguments(self, task: Task) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments for `task`. Raises PayloadError, and what a dataclass of the job raises."""
        values: dict[str, Any] = {}
        if self.decode is not None:
            values[_PAYLOAD] = self.decode(task.payload, task.content_type)
        if _TASK in self.positional or self.keyword:
            # A copy: what a job does to its task must not end up in the one that is given back for a retry.
            values[_TASK] = Task()
            values[_TASK].CopyFrom(task)
        keyword = {name: values[what] for name, what in self.keyword.items()}
        return [values[what] for what in self.positional], keyword


def bind(function: Callable[..., Any]) -> Binding:
    """Return how to call `function` for a task. Raises ConfigError, in one line, when no task can fill it."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as error:
        refuse(f"the parameters of {function!r:.100} cannot be read: {error}")
    decode: Decode | None = None
    positional: list[str] = []
    keyword: dict[str, str] = {}
    skipped = False
    for parameter in parameters:
        by_position = parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        if _TASK not in (*positional, *keyword.values()) and _takes_task(function, parameter):
            if by_position and not skipped:
                positional.append(_TASK)
            elif parameter.kind is not parameter.POSITIONAL_ONLY:
                keyword[parameter.name] = _TASK
        elif by_position and decode is None and not skipped:
            decode = _decoder(function, parameter)
            positional.append(_PAYLOAD)
        elif parameter.default is _EMPTY:
            refuse(
                f"parameter {parameter.name!r} gets no value: a job takes its payload first, a `task: Task` "
                "if it wants one, and anything else needs a default"
            )
        else:
            skipped = skipped or by_position
    return Binding(decode, tuple(positional), keyword)


def _takes_task(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if annotation is _EMPTY:
        return parameter.name == _TASK
    try:
        return _resolved(function, parameter) is Task
    except (NameError, AttributeError):
        # Imported only for type checkers, which is good style: its name has to do.
        return str(annotation).strip("'\"").rpartition(".")[2] == "Task"
    except (TypeError, SyntaxError):
        return False


def _decoder(function: Callable[..., Any], parameter: inspect.Parameter) -> Decode:
    where = f"parameter {parameter.name!r}"
    if parameter.annotation is _EMPTY:
        return decoder(Any)
    try:
        return decoder(_resolved(function, parameter))
    except UnsupportedError as error:
        refuse(f"{where}: a payload cannot be read as {error}")
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        refuse(f"{where}: annotation {parameter.annotation!s:.100} cannot be resolved at run time: {error}")


def _resolved(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:  # noqa: ANN401
    # One at a time: a name that only type checkers know must not spoil the others.
    holder = SimpleNamespace(__annotations__={_PAYLOAD: parameter.annotation})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    return typing.get_type_hints(holder, globalns=names)[_PAYLOAD]
