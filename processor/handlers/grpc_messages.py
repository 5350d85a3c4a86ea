"""The messages of a gRPC call: handler.proto's two, and google.rpc.RetryInfo in the details of a status."""

from __future__ import annotations

from typing import Final

from processor.handlers.protobuf_wire import bytes_field, fields, int_field
from wait_registry.errors import PermanentError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.records.original import TimestampType

_TIMESTAMP_TYPES: Final[dict[TimestampType, int]] = {"none": 0, "create": 1, "append": 2}
_RETRY_INFO: Final = b"/google.rpc.RetryInfo"


def encode_request(record: Record, attempt: int) -> bytes:
    """Encode a HandleRequest.

    Args:
        record: what to send; null and empty stay apart.
        attempt: which call of this delivery it is, from 1.
    """
    expires_at = record.expires_at
    parts = [
        _text(1, record.topic),
        _int(2, record.partition),
        _int(3, record.offset),
        _int(4, record.timestamp),
        _int(5, _TIMESTAMP_TYPES[record.timestamp_type]),
        b"" if record.key is None else bytes_field(6, record.key),
        b"" if record.value is None else bytes_field(7, record.value),
        *(bytes_field(8, _header(name, value)) for name, value in record.headers),
        _text(9, record.group),
        _text(10, record.wait_id),
        _text(11, record.idempotency_key),
        _int(12, record.delivery),
        _int(13, attempt),
        b"" if expires_at is None else int_field(14, round(expires_at.timestamp() * 1000)),
    ]
    return b"".join(parts)


def _header(name: str, value: bytes | None) -> bytes:
    return _text(1, name) + (b"" if value is None else bytes_field(2, value))


def _text(field: int, text: str) -> bytes:
    # Fields without presence are skipped where they have their default.
    return bytes_field(field, text.encode()) if text else b""


def _int(field: int, number: int) -> bytes:
    return int_field(field, number) if number else b""


def decode_response(message: bytes) -> HandlerResult:
    """Decode a HandleResponse.

    Raises:
        PermanentError: it isn't one, or has an outcome that this release doesn't know: it must not count as done.
    """
    result: HandlerResult = None
    try:
        for field, content in fields(message):
            if field != 1 or not isinstance(content, bytes):
                raise PermanentError(
                    f"the response has the unknown field {field}: it is no waitreg.v1.HandleResponse, or one of a "
                    "later release. Correct the service, or upgrade wait-registry"
                )
            result = Discard(_bytes_of(content, 1).decode())
    except ValueError as error:
        raise PermanentError(f"the response is no waitreg.v1.HandleResponse: {error}") from error
    return result


def retry_delay_s(status: bytes | str | None) -> float | None:
    """Read the pause that a failed call asks for.

    Args:
        status: the trailer ``grpc-status-details-bin``, a google.rpc.Status; None if there is none.

    Returns:
        The delay in its google.rpc.RetryInfo, s; None if it has none that can be read.
    """
    if not isinstance(status, bytes):
        return None
    try:
        for field, detail in fields(status):
            if field == 3 and isinstance(detail, bytes) and _bytes_of(detail, 1).endswith(_RETRY_INFO):
                delay = dict(fields(_bytes_of(_bytes_of(detail, 2), 1)))
                seconds, nanoseconds = delay.get(1, 0), delay.get(2, 0)
                if isinstance(seconds, int) and isinstance(nanoseconds, int):
                    return max(0.0, seconds + nanoseconds / 1e9)
    except ValueError:
        pass  # what another program wrote there isn't worth more than the status itself
    return None


def _bytes_of(message: bytes, wanted: int) -> bytes:
    """Return a field's last content; empty if it has none, as its default."""
    found = b""
    for field, content in fields(message):
        if field == wanted and isinstance(content, bytes):
            found = content
    return found
