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
    columns = [
        [row.key for row in rows],
        [row.value for row in rows],
        [row.topic for row in rows],
        [row.partition for row in rows],
        [row.offset for row in rows],
        [row.time_ms for row in rows],
        [
            None if row.headers is None else [{"key": name, "value": value} for name, value in row.headers]
            for row in rows
        ],
    ]
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)], SCHEMA)
