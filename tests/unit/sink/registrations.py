"""Wait records as a processor writes them, as rows of a batch, and what the sink makes of such a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sink.apply.quarantine import Quarantined
from sink.apply.wait_rows import COLUMNS, WaitRows
from tests.unit.sink.batches import Headers, Row
from wait_registry.records.original import Original, Source
from wait_registry.records.wait_record import WaitRecordEncoder

EXPIRES_AT_MS = 1_795_314_000_123
ENCODER = WaitRecordEncoder("billing", "host-1", "waitreg.dlq", "dlq", 3)
ORIGINAL = Original("orders", 3, 42, 1_795_227_600_000, "create", b"customer-1", b"paid", (("tenant", b"acme"),))


def wait_id(number: int) -> str:
    """Return one of many wait ids."""
    return f"019fc448-d29b-8abc-9def-{number:012x}"


def registration(
    offset: int,
    original: Original = ORIGINAL,
    expires_at_ms: int = EXPIRES_AT_MS,
    source: Source | None = None,
    trace: Headers | None = None,
) -> Row:
    """Return a wait record that the real encoder wrote, with an id of its own."""
    headers = ENCODER.headers(original, wait_id(offset), expires_at_ms, 1 + offset % 3, source, trace)
    return Row(wait_id(offset).encode(), original.value or b"", offset % 4, offset, headers=tuple(headers))


def with_header(row: Row, name: str, value: bytes | None) -> Row:
    """Return the record with another value in one header, which stays in its place."""
    assert row.headers is not None
    return replace(row, headers=tuple((key, value if key == name else held) for key, held in row.headers))


def rows_in_order(rows: WaitRows) -> list[tuple[Any, ...]]:
    """Return the rows as tuples, in the order of their places, once their columns are what COPY takes."""
    assert [(column.name, column.values.type, column.encode) for column in rows.columns] == list(COLUMNS)
    for column in rows.columns:
        column.values.validate(full=True)
    columns = {column.name: column.values.to_pylist() for column in rows.columns}
    place = [list(columns).index(name) for name in ("wait_partition", "wait_offset")]
    return sorted(zip(*columns.values(), strict=True), key=lambda row: [row[index] for index in place])


def quarantined_in_order(rows: WaitRows) -> list[Quarantined]:
    """Return what could not be read, in the order of their places."""
    return sorted(rows.unreadable, key=lambda record: (record.partition, record.offset))


def in_chunks(batch: pa.Table, lengths: Sequence[int]) -> pa.Table:
    """Return the same records in chunks of these lengths, which are parts of longer ones; the rest is the last."""
    chunks, start = [], 0
    for length in lengths:
        chunks.append(batch.slice(start, length))
        start += length
    return pa.concat_tables([*chunks, batch.slice(start)])
