"""Batches as Spark's Kafka source gives them, made by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sink.read.record_columns import SCHEMA

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Row:
    """One record of a batch."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    time_ms: int = 1_000
    headers: Headers | None = ()
    topic: str = "wait"


def batch_of(rows: list[Row]) -> pa.Table:
    """Return the batch of these records."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, _values(row), strict=True)) for row in rows], SCHEMA)


def _values(row: Row) -> tuple[object, ...]:
    headers = row.headers and [{"key": name, "value": value} for name, value in row.headers]
    return row.key, row.value, row.topic, row.partition, row.offset, row.time_ms, headers
