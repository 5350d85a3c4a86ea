"""One header of many records at once, without making a Python object a record."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from wait_registry.errors import DataError
from wait_registry.records.times import parse_utc_ms

# What `format_utc_ms` writes, if there is such a day: Arrow reads it, and much that is no time to others.
UTC_MS: Final = (
    r"^(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
    r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
)


def header_values(headers: pa.ChunkedArray, name: str) -> pa.Array:
    """Return each record's last header of that name as text; null where there is none or it isn't UTF-8.

    ``headers`` is a column of lists of (key, value); of several headers with one name the last counts.
    """
    return as_text(header_bytes(headers, name))


def header_bytes(headers: pa.ChunkedArray, name: str) -> pa.Array:
    """Return each record's last header of that name; null where there is none; arguments as `header_values`."""
    # Chunk by chunk: to join them would copy all headers.
    found = [_last_values(chunk, name) for chunk in headers.chunks]
    return pa.concat_arrays([pa.nulls(0, pa.binary()), *found])


def times_ms(texts: pa.Array) -> pa.Array:
    """Return ISO 8601 times as ms since the epoch, null where one can't be read."""
    others = pc.fill_null(pc.invert(pc.match_substring_regex(texts, UTC_MS)), False)
    try:
        ours = pc.cast(pc.if_else(others, pa.scalar(None, pa.string()), texts), pa.timestamp("ms", "UTC"))
    except pa.ArrowInvalid:  # no such day
        return pa.array(map(_parsed, texts.to_pylist()), pa.int64())
    parsed = pa.array(map(_parsed, texts.filter(others).to_pylist()), pa.int64())
    return pc.replace_with_mask(pc.cast(ours, pa.int64()), others, parsed)


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
