"""The Protobuf wire format (https://protobuf.dev/programming-guides/encoding), as far as a handler's call needs it.

Generated code would tie the processor to a version of the package protobuf, which a user's handlers, PySpark and
OpenTelemetry restrict as well: https://protobuf.dev/support/cross-version-runtime-guarantee. Tests compare these
functions with what protoc generates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_INT64 = 1 << 64


def varint(number: int) -> bytes:
    """Encode an int32, int64 or enum; negative numbers take ten bytes."""
    if 0 <= number < 0x80:
        return number.to_bytes()
    number %= _INT64
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def int_field(field: int, number: int) -> bytes:
    """Encode a field of type int32, int64 or enum."""
    return varint(field << 3 | _VARINT) + varint(number)


def bytes_field(field: int, content: bytes) -> bytes:
    """Encode a field of type bytes, string (UTF-8) or message."""
    return b"%b%b%b" % (varint(field << 3 | _BYTES), varint(len(content)), content)


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Decode a message's fields.

    Args:
        message: as received.

    Returns:
        Number and content of each field, in order: a signed number of 64 bits, or bytes.

    Raises:
        ValueError: the bytes are no message.
    """
    place = 0
    while place < len(message):
        tag, place = _number(message, place)
        kind = tag & 7
        if kind == _VARINT:
            number, place = _number(message, place)
            yield tag >> 3, number - _INT64 if number >> 63 else number
            continue
        if kind == _BYTES:
            size, place = _number(message, place)
        elif kind in _FIXED_SIZES:
            size = _FIXED_SIZES[kind]
        else:
            raise ValueError(f"wire type {kind} in a message")
        if len(message) - place < size:
            raise ValueError("a message ends within a field")
        yield tag >> 3, message[place : place + size]
        place += size


def _number(message: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("a message ends within a number")
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number % _INT64, place
    raise ValueError("a number of more than ten bytes in a message")
