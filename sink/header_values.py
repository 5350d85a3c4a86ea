"""One header of many records at once, without making a Python object a record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from wait_registry.errors import DataError
from wait_registry.records.times import parse_utc_ms

# A null header is the last one too.
NULLS_COUNT = pc.ScalarAggregateOptions(skip_nulls=False)


def header_values(headers: pa.ChunkedArray, name: str) -> pa.Array:
    """Return each record's last header of that name as text; null where there is none or it isn't UTF-8.

    ``headers`` is a column of lists of (key, value); of several headers with one name the last counts.
    """
    column = headers.combine_chunks() if isinstance(headers, pa.ChunkedArray) else headers
    if isinstance(column, pa.ChunkedArray):  # combining no chunk at all gives a chunked array again
        return pa.nulls(0, pa.string())
    record = pc.list_parent_indices(column)
    pairs = pc.list_flatten(column)
    wanted = pc.equal(pc.struct_field(pairs, "key"), name)
    values = pc.struct_field(pairs, "value").filter(wanted)
    found = pa.table({"record": record.filter(wanted), "value": values})
    # Records come in ascending order, so that the last entry of each is the last header of that name.
    last = found.group_by("record", use_threads=False).aggregate([("value", "last", NULLS_COUNT)])
    place = pc.index_in(pa.array(range(len(column)), pa.int64()), last["record"].combine_chunks())
    return as_text(last["value_last"].combine_chunks().take(place))


def times_ms(texts: pa.Array) -> pa.Array:
    """Return ISO 8601 times as ms since the epoch, null where one can't be read."""
    try:
        return pc.cast(pc.cast(texts, pa.timestamp("ms", "UTC")), pa.int64())
    except pa.ArrowInvalid:  # the older dialect has no zone, which Arrow refuses
        return pa.array([_parsed(text) for text in texts.to_pylist()], pa.int64())


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
