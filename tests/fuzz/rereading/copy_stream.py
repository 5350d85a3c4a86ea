"""PostgreSQL's binary COPY format, field by field as its documentation describes it."""

from __future__ import annotations

import struct

Rows = list[list[bytes | None]]


def reread_copy(stream: bytes) -> Rows:
    """Return the rows of a stream.

    :raises AssertionError: it isn't one, or has more behind its end.
    """
    assert stream[:19] == b"PGCOPY\n\xff\r\n\0" + bytes(8), "the signature"
    rows: Rows = []
    at = 19
    while True:
        (fields,) = struct.unpack_from(">h", stream, at)
        at += 2
        if fields == -1:
            assert at == len(stream), f"{len(stream) - at} bytes behind the end"
            return rows
        row: list[bytes | None] = []
        for _ in range(fields):
            (length,) = struct.unpack_from(">i", stream, at)
            at += 4
            row.append(None if length == -1 else stream[at : at + length])
            assert length >= -1 and at + length <= len(stream), f"a field of {length} bytes"
            at += max(length, 0)
        rows.append(row)
