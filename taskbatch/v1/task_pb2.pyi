from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Task(_message.Message):
    __slots__ = ("id", "type", "payload", "content_type", "enqueued_at_ms", "failures", "interruptions", "unroutable", "max_attempts", "expires_at_ms", "limit_key", "last_error", "requeue_nonce", "unique_key", "headers")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTIONS_FIELD_NUMBER: _ClassVar[int]
    UNROUTABLE_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    REQUEUE_NONCE_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    payload: bytes
    content_type: str
    enqueued_at_ms: int
    failures: int
    interruptions: int
    unroutable: int
    max_attempts: int
    expires_at_ms: int
    limit_key: str
    last_error: str
    requeue_nonce: str
    unique_key: str
    headers: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., enqueued_at_ms: _Optional[int] = ..., failures: _Optional[int] = ..., interruptions: _Optional[int] = ..., unroutable: _Optional[int] = ..., max_attempts: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., limit_key: _Optional[str] = ..., last_error: _Optional[str] = ..., requeue_nonce: _Optional[str] = ..., unique_key: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...
