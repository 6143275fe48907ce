# ruff: noqa: ANN401 - JSON values and annotations can be anything
"""From JSON values to what an annotation names: dataclasses, enums, dates, and containers of them.

A `Convert` is built once for an annotation, takes a value, and refuses it by raising MismatchError, which
names the place in the payload (`to[1].email`) and the types but never the value: payloads do not belong
into logs and dead letters.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, NoReturn, TypeAlias, Union

Convert: TypeAlias = Callable[[Any], Any]
_Known: TypeAlias = dict[Any, Convert]

_KINDS: dict[object, str] = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "null",
    dict: "an object",
    list: "a list",
}
_SCALARS = (str, bool, int, type(None))


class UnsupportedError(Exception):
    """An annotation that no JSON value can be converted to."""


class MismatchError(Exception):
    """A value that is not what the annotation names; its text is the path to it and what was expected."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message, self.path = message, path

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.') or 'payload'}: {self.message}"

    def within(self, step: str) -> MismatchError:
        """Return the same seen from one container further out; `step` is `.name` or `[index]`."""
        return MismatchError(self.message, step[:80] + self.path)


def converter(annotation: Any, known: _Known | None = None) -> Convert:  # noqa: PLR0911 - one line a kind
    """Return what turns a JSON value into `annotation`, already resolved. Raises UnsupportedError."""
    known = {} if known is None else known
    origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if annotation in (Any, object):
        return lambda value: value
    if annotation is None or annotation in _SCALARS:
        return _scalar(type(None) if annotation is None else annotation)
    if annotation is float:
        return _float
    if origin in (dict, Mapping) or typing.is_typeddict(annotation):
        return _object(arguments, known)
    if origin in (list, Sequence):
        return _list(converter(arguments[0] if arguments else Any, known))
    if origin is tuple:
        return _tuple(arguments, known)
    if origin in (Union, types.UnionType):
        return _union(annotation, arguments, known)
    if origin is Literal:
        return _literal(arguments)
    if isinstance(annotation, type):
        return _class(annotation, known)
    raise UnsupportedError(_shown(annotation))


def _class(kind: type, known: _Known) -> Convert:
    if is_dataclass(kind):
        if kind not in known:
            # Known before it is built, so that a dataclass can hold its own kind (a tree).
            known[kind] = lambda value: built(value)  # noqa: PLW0108 - there is no `built` yet
            built = _dataclass(kind, known)
        return known[kind]
    if issubclass(kind, enum.Enum):
        return _parsed(kind, _one_of([member.value for member in kind]))
    if kind.__module__ == "datetime" and kind.__name__ in {"datetime", "date"}:
        return _parsed(_iso(kind), f"an ISO 8601 {kind.__name__}")
    raise UnsupportedError(_shown(kind))


def _scalar(kind: type) -> Convert:
    def convert(value: Any) -> Any:
        # type(), not isinstance(): true is no integer.
        return value if type(value) is kind else _refuse(_KINDS[kind], value)

    return convert


def _float(value: Any) -> float:
    if type(value) not in {int, float}:
        _refuse("a number", value)
    try:
        return float(value)
    except OverflowError:
        _refuse("a number in the range of a float", value)


def _object(arguments: tuple[Any, ...], known: _Known) -> Convert:
    key, item = arguments or (str, Any)
    if key not in (str, Any):
        raise UnsupportedError(f"an object with keys of {_shown(key)}; in JSON they are strings")
    convert_item = converter(item, known)

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            _refuse("an object", value)
        return {name: _inside(f".{name}", convert_item, item) for name, item in value.items()}

    def keep(value: Any) -> Any:
        return value if type(value) is dict else _refuse("an object", value)

    return keep if item in (Any, object) else convert


def _list(convert_item: Convert) -> Convert:
    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            _refuse("a list", value)
        done: list[Any] = []
        try:
            for item in value:
                done.append(convert_item(item))  # noqa: PERF401 - its length says where it went wrong
        except MismatchError as error:
            raise error.within(f"[{len(done)}]") from None
        return done

    return convert


def _tuple(arguments: tuple[Any, ...], known: _Known) -> Convert:
    if not arguments or arguments[-1] is Ellipsis:
        as_list = _list(converter(arguments[0] if arguments else Any, known))
        return lambda value: tuple(as_list(value))
    converts = [converter(argument, known) for argument in arguments]

    def convert(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(converts):
            _refuse(f"a list of {len(converts)}", value)
        return tuple(_inside(f"[{i}]", c, value[i]) for i, c in enumerate(converts))

    return convert


def _union(annotation: Any, arguments: tuple[Any, ...], known: _Known) -> Convert:
    nullable = type(None) in arguments
    members = [converter(argument, known) for argument in arguments if argument is not type(None)]

    def convert(value: Any) -> Any:
        if value is None and nullable:
            return None
        if len(members) == 1:
            return members[0](value)
        reasons = []
        for member in members:  # left to right: in `int | float`, 1 stays an integer
            try:
                return member(value)
            except MismatchError as error:
                reasons.append(str(error))
        raise MismatchError(f"fits none of {_shown(annotation)} ({'; '.join(reasons)})"[:500])

    return convert


def _literal(allowed: tuple[Any, ...]) -> Convert:
    def convert(value: Any) -> Any:
        for choice in allowed:
            if type(value) is type(choice) and value == choice:
                return choice
        return _refuse(_one_of(allowed), value)

    return convert


def _parsed(parse: Convert, wanted: str) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return parse(value)
        except (ValueError, TypeError, AttributeError):
            return _refuse(wanted, value)

    return convert


def _iso(kind: Any) -> Convert:
    # Not every Python we support reads the Z. `kind` is given, so that nobody imports datetime for nothing.
    return lambda value: kind.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)


def _dataclass(kind: Any, known: _Known) -> Convert:
    try:
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError) as error:
        raise UnsupportedError(f"{kind.__qualname__}: {error}") from error
    declared = [field for field in fields(kind) if field.init]
    required = [f.name for f in declared if f.default is MISSING and f.default_factory is MISSING]
    converts = {field.name: converter(hints[field.name], known) for field in declared}

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            _refuse("an object", value)
        for name in value:
            if name not in converts:
                raise MismatchError("unknown field", f".{name}"[:80])
        for name in required:
            if name not in value:
                raise MismatchError("missing", f".{name}")
        arguments = {name: _inside(f".{name}", converts[name], item) for name, item in value.items()}
        try:
            return kind(**arguments)
        except (ValueError, TypeError) as error:  # a check in its __post_init__
            raise MismatchError(str(error)) from error

    return convert


def _inside(step: str, convert: Convert, item: Any) -> Any:
    try:
        return convert(item)
    except MismatchError as error:
        raise error.within(step) from None


def _refuse(wanted: str, value: object) -> NoReturn:
    kind = _KINDS.get(type(value), type(value).__name__)
    if isinstance(value, list):
        kind = f"a list of {len(value)}"
    raise MismatchError(f"expected {wanted}, got {kind}")


def _one_of(choices: Sequence[Any]) -> str:
    return f"one of {', '.join(map(repr, choices))}"[:200]


def _shown(annotation: Any) -> str:
    return annotation.__qualname__ if type(annotation) is type else str(annotation)
