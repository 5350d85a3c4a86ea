"""A batch as it comes from Spark's Kafka source: one Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wait_registry.records.headers import Headers

KEY: Final = "key"
VALUE: Final = "value"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIME_MS: Final = "time_ms"
HEADERS: Final = "headers"
OMITTED_BYTES: Final = "omitted_bytes"

# Python objects exist of at most as many records at once, some 10 kB each.
RECORDS_AT_ONCE: Final = 5_000

# What is selected of the source's columns; the order is that of SCHEMA.
EXPRESSIONS: Final = (
    KEY,
    VALUE,
    TOPIC,
    PARTITION,
    OFFSET,
    f"unix_millis(timestamp) as {TIME_MS}",
    HEADERS,
)

SCHEMA: Final = pa.schema(
    [
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
        (TOPIC, pa.string()),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (TIME_MS, pa.int64()),
        (HEADERS, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


_BYTES: Final = (
    f"coalesce(octet_length({KEY}), 0) + coalesce(octet_length({VALUE}), 0) + coalesce(aggregate({HEADERS}, 0L, "
    "(sum, header) -> sum + octet_length(header.key) + coalesce(octet_length(header.value), 0)), 0)"
)


class Columns(NamedTuple):
    """What is selected of the source's columns, and the Arrow schema of the batch."""

    expressions: tuple[str, ...] = EXPRESSIONS
    schema: pa.Schema = SCHEMA


ALL: Final = Columns()


def columns_up_to(max_bytes: int) -> Columns:
    """Return all columns without what is in records of more bytes, whose sizes are in a further column."""
    too_large = f"{_BYTES} > {max_bytes}"
    kept = (
        f"if({too_large}, null, {name}) as {name}" if name in (KEY, VALUE, HEADERS) else name for name in EXPRESSIONS
    )
    sizes = f"if({too_large}, {_BYTES}, null) as {OMITTED_BYTES}"
    return Columns((*kept, sizes), SCHEMA.append(pa.field(OMITTED_BYTES, pa.int64())))


def omitted_bytes(batch: pa.Table) -> int:
    """Return the size of the records that a batch was read without."""
    if OMITTED_BYTES not in batch.column_names:
        return 0
    return int(pc.sum(batch[OMITTED_BYTES]).as_py() or 0)


def headers_of(batch: pa.Table) -> list[Headers]:
    """Return every record's headers as the codec takes them; a record without headers has an empty tuple."""
    found: list[Headers] = []
    for chunk in batch[HEADERS].chunks:
        # Flattened once: a Python object a header instead of a dictionary, several times as fast as to_pylist().
        starts = chunk.offsets.to_pylist()
        # The chunk may be a slice: all its values are those of the whole.
        pairs = chunk.values.slice(starts[0], starts[-1] - starts[0])
        listed = list(zip(pairs.field("key").to_pylist(), pairs.field("value").to_pylist(), strict=True))
        found.extend(tuple(listed[start - starts[0] : end - starts[0]]) for start, end in pairwise(starts))
    return found


def records_of(batch: pa.Table, at_once: int = RECORDS_AT_ONCE) -> Iterator[dict[str, Any]]:
    """Yield the records as dictionaries by column name, headers as tuples of pairs; ``at_once`` bounds the memory."""
    for start in range(0, batch.num_rows, at_once):
        part = batch.slice(start, at_once)
        columns = {name: part[name].to_pylist() for name in part.column_names if name != HEADERS}
        columns[HEADERS] = headers_of(part)
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))
