"""An Arrow table as the rows of COPY in its binary format, without a Python object per row."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

# How long the bytes of one portion may be: a large batch isn't one object, neither here nor on its way from a task.
PORTION_BYTES: Final = 8 * 1024 * 1024
# Rows that are encoded at once: about 4 MB.
ROWS_AT_ONCE: Final = 5_000

_NULL: Final = b"\xff\xff\xff\xff"
_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
_JSONB_VERSION: Final = b"\x01"
# Postgres counts from the year 2000, µs.
_POSTGRES_EPOCH_US: Final = 946_684_800_000_000

# A column's fields in COPY: the same bytes in each row, or one item per row.
_Pieces: TypeAlias = list[bytes | pa.Array]


class _Number(NamedTuple):
    """How a number is written: its Arrow type, that of `array`, and its bytes."""

    arrow: pa.DataType
    code: str
    width: int


_NUMBERS: Final = {
    "int4": _Number(pa.int32(), "i", 4),
    "int8": _Number(pa.int64(), "q", 8),
    "bool": _Number(pa.int8(), "b", 1),
    "timestamptz": _Number(pa.int64(), "q", 8),
}


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Rows for COPY: their number, and their bytes in portions of at most `PORTION_BYTES`, cut anywhere."""

    count: int = 0
    portions: tuple[bytes, ...] = ()


def copy_rows_of(batches: Iterable[pa.RecordBatch], types: Mapping[str, str]) -> CopyRows:
    """Return the rows of record batches.

    Args:
        batches: text, bytea and jsonb are strings or bytes, timestamptz ms since the epoch, the others numbers; columns
            may be dictionaries.
        types: Postgres' type of each column, by name; the rows have the columns in this order.
    """
    count = 0
    portions: list[bytes] = []
    for batch in batches:
        count += batch.num_rows
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            joined = _encoded(batch.slice(start, ROWS_AT_ONCE).select(list(types)), types)
            portions += (joined[at : at + PORTION_BYTES].tobytes() for at in range(0, len(joined), PORTION_BYTES))
    return CopyRows(count, tuple(portions))


def copy_stream(portions: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what COPY gets: the portions of any number of `CopyRows` between signature and trailer."""
    yield _SIGNATURE
    yield from portions
    yield _TRAILER


def _encoded(part: pa.RecordBatch, types: Mapping[str, str]) -> memoryview:
    pieces: _Pieces = [len(types).to_bytes(2)]
    for column, kind in zip(part.columns, types.values(), strict=True):
        for piece in _pieces(column, kind):
            if isinstance(piece, bytes) and isinstance(pieces[-1], bytes):
                pieces[-1] += piece
            else:
                pieces.append(piece)
    scalars = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    joined = pc.binary_join_element_wise(*scalars, pa.scalar(b"", pa.binary()))
    _, offsets, data = joined.buffers()
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[joined.offset] : ends[joined.offset + len(joined)]]


def _pieces(column: pa.Array, kind: str) -> _Pieces:
    if column.null_count == len(column):
        return [_NULL]
    if isinstance(column, pa.DictionaryArray):
        if len(column.dictionary) == 1 and column.null_count == 0:
            return [_fields(column.dictionary, kind)[0].as_py() or _NULL]
        return [pc.fill_null(_fields(column.dictionary, kind).take(column.indices), _NULL)]
    if column.null_count:
        return [pc.fill_null(_fields(column, kind), _NULL)]
    return _parts(column, kind)


def _fields(column: pa.Array, kind: str) -> pa.Array:
    """Return each field as a whole, null for null."""
    parts = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in _parts(column, kind)]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _parts(column: pa.Array, kind: str) -> _Pieces:
    """Return the length and the bytes of each field."""
    number = _NUMBERS.get(kind)
    if number is not None:
        return [number.width.to_bytes(4), _network_order(_as_number(column, kind, number), number)]
    data = pc.cast(column, pa.binary())
    lengths = pc.binary_length(data)
    if kind == "jsonb":
        return [_network_order(pc.add(lengths, pa.scalar(1, pa.int32())), _NUMBERS["int4"]), _JSONB_VERSION, data]
    return [_network_order(lengths, _NUMBERS["int4"]), data]


def _as_number(column: pa.Array, kind: str, number: _Number) -> pa.Array:
    if kind == "timestamptz":
        microseconds = pc.multiply(pc.cast(column, pa.int64()), 1_000)
        return pc.subtract(microseconds, _POSTGRES_EPOCH_US)
    return pc.cast(column, number.arrow)


def _network_order(numbers: pa.Array, number: _Number) -> pa.Array:
    """Return numbers as their bytes, the highest first; null for null."""
    filled = pc.fill_null(numbers, 0)
    first = filled.offset * number.width
    held = array(number.code, memoryview(filled.buffers()[1])[first : first + len(numbers) * number.width].tobytes())
    if sys.byteorder == "little":
        held.byteswap()
    swapped = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(number.width), len(numbers), [None, pa.py_buffer(held.tobytes())]
    )
    found = pc.cast(swapped, pa.binary())
    return found if numbers.null_count == 0 else pc.if_else(pc.is_valid(numbers), found, pa.scalar(None, pa.binary()))
