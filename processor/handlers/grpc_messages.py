"""The messages of a gRPC call: handler.proto's two, and google.rpc.RetryInfo in the details of a status.

The classes are made from descriptors at run time. Generated code would need a version of protobuf that isn't older than
its generator, and a user's handlers, PySpark and OpenTelemetry restrict that version too:
https://protobuf.dev/support/cross-version-runtime-guarantee. A test compares the descriptors with handler.proto.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from google.rpc import error_details_pb2, status_pb2

from wait_registry.errors import PermanentError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.records.original import TimestampType

_PACKAGE: Final = "waitreg_handler.v1"
# Name, number and type of each field: ? has presence, * is repeated.
_MESSAGES: Final = {
    "HandleRequest": (
        "topic 1 string, partition 2 int32, offset 3 int64, timestamp_ms 4 int64, timestamp_type 5 TimestampType, "
        "key 6 bytes?, value 7 bytes?, headers 8 Header*, group 9 string, wait_id 10 string, "
        "idempotency_key 11 string, delivery 12 int32, attempt 13 int32, expires_at_ms 14 int64?"
    ),
    "Header": "name 1 string, value 2 bytes?",
    "HandleResponse": "discard 1 Discard",
    "Discard": "reason 1 string",
}
_TIMESTAMP_TYPES: Final[dict[TimestampType, int]] = {"none": 0, "create": 1, "append": 2}


def handler_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """Return what handler.proto says of its messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name="waitreg_handler/v1/handler.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            _add_field(message, *field.split())
    values = file.enum_type.add(name="TimestampType").value
    for name, number in (("UNSPECIFIED", 0), ("CREATE", 1), ("APPEND", 2)):
        values.add(name=f"TIMESTAMP_TYPE_{name}", number=number)
    return file


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: str, kind: str) -> None:
    field = descriptor_pb2.FieldDescriptorProto
    kind, presence = kind.rstrip("?*"), kind.endswith("?")
    added = message.field.add(name=name, number=int(number))
    added.label = field.LABEL_REPEATED if kind == "Header" else field.LABEL_OPTIONAL
    if kind.islower():
        added.type = field.Type.Value(f"TYPE_{kind.upper()}")
    else:
        added.type = field.TYPE_ENUM if kind == "TimestampType" else field.TYPE_MESSAGE
        added.type_name = f".{_PACKAGE}.{kind}"
    if presence:
        # In proto3, an optional field is the only one of a oneof.
        added.proto3_optional = True
    if presence or kind == "Discard":
        added.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}" if presence else "outcome")


def _classes() -> tuple[type[Any], type[Any]]:
    # In a pool of its own: a user's handler may have generated code of the same file.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(handler_descriptor())
    request, response = map(pool.FindMessageTypeByName, (f"{_PACKAGE}.HandleRequest", f"{_PACKAGE}.HandleResponse"))
    return message_factory.GetMessageClass(request), message_factory.GetMessageClass(response)


_REQUEST, _RESPONSE = _classes()


def encode_request(record: Record, attempt: int) -> bytes:
    """Encode a HandleRequest.

    Args:
        record: what to send; null and empty stay apart.
        attempt: which call of this delivery it is, from 1.
    """
    expires_at = record.expires_at
    request = _REQUEST(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        timestamp_type=_TIMESTAMP_TYPES[record.timestamp_type],
        key=record.key,
        value=record.value,
        headers=[{"name": name, "value": value} for name, value in record.headers],
        group=record.group,
        wait_id=record.wait_id,
        idempotency_key=record.idempotency_key,
        delivery=record.delivery,
        attempt=attempt,
        expires_at_ms=None if expires_at is None else round(expires_at.timestamp() * 1000),
    )
    encoded: bytes = request.SerializeToString()
    return encoded


def decode_response(message: bytes) -> HandlerResult:
    """Decode a HandleResponse.

    Raises:
        PermanentError: it isn't one, or has an outcome that this release doesn't know: it must not count as done.
    """
    try:
        response = _RESPONSE.FromString(message)
    except DecodeError as error:
        raise PermanentError(f"the response is no waitreg_handler.v1.HandleResponse: {error}") from error
    if unknown := [field.field_number for field in UnknownFieldSet(response)]:
        raise PermanentError(
            f"the response has the unknown field {unknown[0]}: it is no waitreg_handler.v1.HandleResponse, or one "
            "of a later release. Correct the service, or upgrade wait-registry"
        )
    return Discard(response.discard.reason) if response.HasField("discard") else None


def retry_delay_s(status: bytes | str | None) -> float | None:
    """Read the pause that a failed call asks for.

    Args:
        status: the trailer ``grpc-status-details-bin``, a google.rpc.Status; None if there is none.

    Returns:
        The delay in its google.rpc.RetryInfo, s; None if it has none that can be read.
    """
    if not isinstance(status, bytes):
        return None
    info = error_details_pb2.RetryInfo()
    try:
        for detail in status_pb2.Status.FromString(status).details:
            if detail.Unpack(info):
                delay_s: float = info.retry_delay.seconds + info.retry_delay.nanos / 1e9
                return max(0.0, delay_s)
    except DecodeError:
        pass  # what another program wrote there isn't worth more than the status itself
    return None
