"""What COPY in its binary format holds, read as Postgres reads it."""

from __future__ import annotations

from collections.abc import Iterable

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
NULL = -1

Fields = tuple[bytes | None, ...]


def rows_in(portions: Iterable[bytes]) -> list[Fields]:
    """Return the fields of rows without signature and trailer; portions may be cut anywhere."""
    data, at = memoryview(b"".join(portions)), 0
    rows: list[Fields] = []
    while at < len(data):
        count, at = int.from_bytes(data[at : at + 2]), at + 2
        fields: list[bytes | None] = []
        for _ in range(count):
            length, at = int.from_bytes(data[at : at + 4], signed=True), at + 4
            if length == NULL:
                fields.append(None)
            else:
                fields.append(bytes(data[at : at + length]))
                at += length
        rows.append(tuple(fields))
    return rows
