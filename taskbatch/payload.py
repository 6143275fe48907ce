# ruff: noqa: ANN401 - a payload can be anything
"""A task's payload: what a producer's value becomes on the wire, and what a job is given of it.

The content type says what the bytes are:

* empty, `application/json`, `…+json`: JSON, and no bytes at all read as null;
* `text/…`: a string in UTF-8;
* `application/x-protobuf`, `application/protobuf`, `application/octet-stream`: bytes.

The annotation of the job's first parameter says what it wants to have: `bytes` are given as they are, a
`str` may be JSON or text, a generated message class is read from binary or JSON, everything else from JSON
and, where it is a dataclass, checked field by field. Nothing in a payload chooses code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NoReturn, TypeAlias

from taskbatch.conversion import MismatchError, converter
from taskbatch.errors import TaskbatchError

Decode: TypeAlias = Callable[[bytes, str], Any]
"""Takes payload and content type; raises PayloadError."""

PROTOBUF = "application/x-protobuf"
_BINARY = {PROTOBUF, "application/protobuf", "application/octet-stream"}


class PayloadError(TaskbatchError, ValueError):
    """A payload that is not what its job wants (for good), or a value that cannot become a payload."""


def encode(value: Any) -> tuple[bytes, str]:
    """Return payload and content type for what a producer enqueues. Raises PayloadError.

    bytes go as they are, a protobuf message in binary, a string as text, everything else (dataclasses,
    enums and dates included) as JSON with an empty content type.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), "application/octet-stream"
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString(), PROTOBUF
    try:
        if type(value) is str:
            return value.encode(), "text/plain"
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        return text.encode(), ""
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the payload cannot be written: {error}"
        raise PayloadError(msg) from error


def decoder(annotation: Any) -> Decode:
    """Return what reads a payload as `annotation`, already resolved. Raises UnsupportedError."""
    if annotation is bytes:
        return _bytes
    if annotation is str:
        return _string
    if hasattr(annotation, "FromString") and hasattr(annotation, "DESCRIPTOR"):
        return _message(annotation)
    convert = converter(annotation)

    def decode(payload: bytes, content_type: str) -> Any:
        try:
            return convert(_value(payload, content_type))
        except MismatchError as error:
            raise PayloadError(str(error)) from None
        except RecursionError:
            msg = "the payload is nested too deeply"
            raise PayloadError(msg) from None

    return decode


def _bytes(payload: bytes, _content_type: str) -> bytes:
    return payload


def _string(payload: bytes, content_type: str) -> str:
    if not _is_json(_media(content_type)):
        return _text(payload)
    value = _value(payload, content_type)
    if not isinstance(value, str):
        msg = "payload: expected a string (plain text needs the content type text/plain)"
        raise PayloadError(msg)
    return value


def _message(kind: Any) -> Decode:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - jobs without messages need none of it

    name = kind.DESCRIPTOR.full_name

    def decode(payload: bytes, content_type: str) -> Any:
        if _media(content_type) not in _BINARY:
            return _message_from_json(kind, _text(payload))
        try:
            return kind.FromString(payload)
        except (DecodeError, RecursionError, ValueError):
            msg = f"the payload is not a {name} in binary"
            raise PayloadError(msg) from None

    return decode


def _message_from_json(kind: Any, text: str) -> Any:
    # 30 ms or more, so only for a job that gets its messages as JSON.
    from google.protobuf import json_format  # noqa: PLC0415

    try:
        return json_format.Parse(text, kind())
    except (json_format.ParseError, RecursionError, ValueError) as error:
        # What follows the name of the field would quote its value.
        reason, is_field, _ = _first_line(error).partition(" field: ")
        msg = f"the payload is not a {kind.DESCRIPTOR.full_name}: {reason}{' field' if is_field else ''}"
        raise PayloadError(msg) from None


def _value(payload: bytes, content_type: str) -> Any:
    media = _media(content_type)
    text = _text(payload)
    if media.startswith("text/") and not _is_json(media):
        return text
    if not text:
        return None
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        msg = f"the payload is not JSON: {_first_line(error)}"
        raise PayloadError(msg) from None


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _is_json(media: str) -> bool:
    return media in {"", "application/json", "text/json"} or media.endswith("+json")


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        msg = f"the payload is not UTF-8 at byte {error.start}"
        raise PayloadError(msg) from None


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        msg = "a number is too large"
        raise ValueError(msg)
    return number


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is not a number JSON knows"
    raise ValueError(msg)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]


def _plain(value: Any) -> Any:
    """Return what JSON can hold for a value it cannot."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    if isinstance(value, Enum):
        return value.value
    if type(value).__module__ == "datetime" and hasattr(value, "isoformat"):
        return value.isoformat()
    msg = f"a {type(value).__qualname__} is none of JSON's values"
    raise TypeError(msg)
