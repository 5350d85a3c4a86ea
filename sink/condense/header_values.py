"""Headers of many records at once, without making a Python object per record."""

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


_ONE: Final = pa.array([True], pa.bool_())


class HeaderColumns:
    """The headers of records as one column per name; of several headers with one name the last counts."""

    def __init__(self, headers: pa.ListArray) -> None:
        """Take the headers apart: a list of (key, value) for each record, or null."""
        pairs = pc.list_flatten(headers)
        self._last = len(headers) - 1
        self._names = pc.struct_field(pairs, "key")
        self._values = pc.struct_field(pairs, "value")
        self._records = pc.list_parent_indices(headers)

    def bytes_of(self, name: str) -> pa.Array:
        """Return each record's header of that name, null where there is none or a null one."""
        wanted = pc.indices_nonzero(pc.equal(self._names, pa.scalar(name, pa.string())))
        record = self._records.take(wanted)
        # Records come in ascending order: an entry is the last one of its record if the next one is another record's.
        is_last = pa.concat_arrays([pc.not_equal(record[:-1], record[1:]), _ONE])[: len(record)]
        values = self._values.take(wanted.filter(is_last))
        if len(values) > self._last:
            return values
        return pc.scatter(values, record.filter(is_last), max_index=self._last)

    def have_null(self, names: pa.Array) -> pa.Array:
        """Mark the records with a null header of one of the names."""
        nulls = pc.and_(pc.is_null(self._values), pc.is_in(self._names, names))
        return pc.is_valid(pc.inverse_permutation(self._records.filter(nulls), max_index=self._last))


def header_bytes(headers: pa.ChunkedArray, *names: str) -> list[pa.Array]:
    """Return what `HeaderColumns.bytes_of` returns for each name, of a column in chunks."""
    # Chunk by chunk: to join them would copy all headers.
    parts = [HeaderColumns(part) for part in headers.chunks if len(part)]
    return [pa.concat_arrays([pa.nulls(0, pa.binary()), *(part.bytes_of(name) for part in parts)]) for name in names]


def header_values(headers: pa.ChunkedArray, *names: str) -> list[pa.Array]:
    """Return the same as text; null, too, where it isn't UTF-8."""
    return [as_text(values) for values in header_bytes(headers, *names)]


def times_ms(texts: pa.Array) -> pa.Array:
    """Return ISO 8601 times as ms since the epoch, null where one can't be read."""
    others = pc.fill_null(pc.invert(pc.match_substring_regex(texts, UTC_MS)), False)
    try:
        ours = pc.cast(pc.if_else(others, pa.scalar(None, pa.string()), texts), pa.timestamp("ms", "UTC"))
    except pa.ArrowInvalid:  # no such day
        return pa.array(map(_parsed, texts.to_pylist()), pa.int64())
    parsed = pa.array(map(_parsed, texts.filter(others).to_pylist()), pa.int64())
    return pc.replace_with_mask(pc.cast(ours, pa.int64()), others, parsed)


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
