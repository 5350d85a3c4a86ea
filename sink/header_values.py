"""One header of many records at once, without making a Python object a record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from wait_registry.errors import DataError
from wait_registry.records.times import parse_utc_ms


def header_values(headers: pa.ChunkedArray, name: str) -> pa.Array:
    """Return each record's last header of that name as text; null where there is none or it isn't UTF-8.

    ``headers`` is a column of lists of (key, value); of several headers with one name the last counts.
    """
    # Chunk by chunk: to join them would copy all headers.
    found = [_last_values(chunk, name) for chunk in headers.chunks]
    return as_text(pa.concat_arrays([pa.nulls(0, pa.binary()), *found]))


def times_ms(texts: pa.Array) -> pa.Array:
    """Return ISO 8601 times as ms since the epoch, null where one can't be read."""
    try:
        return pc.cast(pc.cast(texts, pa.timestamp("ms", "UTC")), pa.int64())
    except pa.ArrowInvalid:  # the older dialect has no zone, which Arrow refuses
        return pa.array([_parsed(text) for text in texts.to_pylist()], pa.int64())


def _last_values(column: pa.Array, name: str) -> pa.Array:
    pairs = pc.list_flatten(column)
    wanted = pc.indices_nonzero(pc.equal(pc.struct_field(pairs, "key"), name))
    record = pc.list_parent_indices(column).take(wanted)
    # Records come in ascending order: an entry is the last one of its record if the next one is another record's.
    is_last = pa.concat_arrays([pc.not_equal(record[:-1], record[1:]), pa.array([True], pa.bool_())])[: len(record)]
    values = pc.struct_field(pairs, "value").take(wanted.filter(is_last))
    if len(values) == len(column):
        return values
    return values.take(pc.index_in(pa.array(range(len(column)), pa.int64()), record.filter(is_last)))


def as_text(values: pa.Array) -> pa.Array:
    """Return bytes as text, null where they aren't UTF-8."""
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in values.to_pylist()], pa.string())


def _decoded(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _parsed(text: str | None) -> int | None:
    try:
        return None if text is None else parse_utc_ms(text)
    except DataError:
        return None
