"""Arrow columns as PostgreSQL's binary COPY format, built column by column in C instead of row by row in Python.

Source: PostgreSQL documentation, COPY, "Binary Format": a signature, then a row as int16 field count and, a field,
int32 length (-1 for null) and the type's binary form in network byte order, then int16 -1.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER: Final = b"\xff\xff"
# About as many bytes are encoded at a time, which takes several times its size.
SLICE_BYTES: Final = 4 * 1024 * 1024
WRITE_BYTES: Final = 1024 * 1024

# Postgres counts microseconds from 2000-01-01.
EPOCH_MS: Final = 946_684_800_000

# Signed integers of the module `array`, by their size.
TYPE_CODES: Final = {array(code).itemsize: code for code in "bhiq"}

_EMPTY: Final = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the target table: its name, how its values are encoded, its values."""

    name: str
    encode: Callable[[pa.Array], pa.Array]
    values: pa.Array


def text(values: pa.Array) -> pa.Array:
    """Encode strings (or bytes) as ``text`` or ``bytea``."""
    return values.cast(pa.binary())


def jsonb(values: pa.Array) -> pa.Array:
    """Encode JSON text as ``jsonb``, whose binary form is a version byte 1 and the text."""
    return pc.binary_join_element_wise(pa.scalar(b"\x01", pa.binary()), values.cast(pa.binary()), b"")


def int4(values: pa.Array) -> pa.Array:
    """Encode integers as ``int4``."""
    return _big_endian(values.cast(pa.int32()), 4)


def int8(values: pa.Array) -> pa.Array:
    """Encode integers as ``int8``."""
    return _big_endian(values.cast(pa.int64()), 8)


def boolean(values: pa.Array) -> pa.Array:
    """Encode booleans as ``bool``."""
    return _big_endian(values.cast(pa.int8()), 1)


def time_ms(values: pa.Array) -> pa.Array:
    """Encode ms since the epoch as ``timestamptz``."""
    return int8(pc.multiply(pc.subtract(values, EPOCH_MS), 1000))


def copy_stream(columns: list[Column]) -> Iterator[bytes | memoryview]:
    """Yield the COPY stream of a table's rows in pieces of about 1 MiB."""
    yield SIGNATURE
    rows = len(columns[0].values)
    for start, count in _slices(rows, sum(column.values.nbytes for column in columns)):
        encoded = memoryview(_rows(columns, start, count))
        for begin in range(0, len(encoded), WRITE_BYTES):
            yield encoded[begin : begin + WRITE_BYTES]
    yield TRAILER


def _slices(rows: int, nbytes: int) -> Iterator[tuple[int, int]]:
    count = max(1, rows * SLICE_BYTES // max(nbytes, SLICE_BYTES))
    for start in range(0, rows, count):
        yield start, min(count, rows - start)


def _rows(columns: list[Column], start: int, count: int) -> bytes:
    parts: list[pa.Array | pa.Scalar] = [pa.scalar(len(columns).to_bytes(2, "big"), pa.binary())]
    for column in columns:
        field = column.encode(column.values.slice(start, count))
        parts += [_lengths(field), pc.fill_null(field, _EMPTY)]
    joined = pc.binary_join_element_wise(*parts, b"")
    # The values of one binary array lie one behind the other: what was joined is the stream already.
    offsets = array(TYPE_CODES[4])
    offsets.frombytes(joined.buffers()[1][joined.offset * 4 : (joined.offset + len(joined) + 1) * 4])
    return bytes(joined.buffers()[2][offsets[0] : offsets[-1]])


def _lengths(field: pa.Array) -> pa.Array:
    return int4(pc.fill_null(pc.cast(pc.binary_length(field), pa.int32()), -1))


def _big_endian(values: pa.Array, width: int) -> pa.Array:
    """Return integers of ``width`` bytes as their bytes in network order, null where they are null."""
    numbers = array(TYPE_CODES[width])
    begin = values.offset * width
    numbers.frombytes(values.buffers()[1][begin : begin + len(values) * width])
    if sys.byteorder == "little":
        numbers.byteswap()
    data = [None, pa.py_buffer(numbers.tobytes())]
    encoded = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), data).cast(pa.binary())
    return pc.if_else(pc.is_valid(values), encoded, pa.scalar(None, pa.binary())) if values.null_count else encoded
