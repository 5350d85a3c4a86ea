"""Answers of Kafka's Metadata request as a broker gives them that knows of no other one, nor of itself."""

from __future__ import annotations

import struct

METADATA = 3
_CORRELATION_BYTES = 4
_THROTTLE_BYTES = 4
# Flexible versions, 12 and 13: see `clients/src/main/resources/common/message/MetadataResponse.json` of Kafka.
_NONE = b"\x01"


def without_brokers(answer: bytes) -> bytes:
    """Return an answer (its length in front) whose topics are as they were, in a cluster without brokers."""
    body = answer[4:]
    begin = _CORRELATION_BYTES + 1 + _THROTTLE_BYTES  # behind the header's tags
    count, at = _varint(body, begin)
    for _ in range(count - 1):
        at += 4  # its number
        at = _text(body, at)  # host
        at += 4  # port
        at = _text(body, at)  # rack
        tags, at = _varint(body, at)
        assert tags == 0, f"{tags} tags of a broker, of which nothing is known here"
    emptied = body[:begin] + _NONE + body[at:]
    return struct.pack(">i", len(emptied)) + emptied


def _text(body: bytes, at: int) -> int:
    length, at = _varint(body, at)
    return at + max(length - 1, 0)


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
