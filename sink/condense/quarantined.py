"""Records that can't be decoded: kept whole in a table, so that nothing is lost and nothing is held up."""

from __future__ import annotations

from typing import Any, NamedTuple

from sink.position import clamped
from sink.read.record_columns import HEADERS, KEY, OFFSET, PARTITION, TIME_MS, TOPIC, VALUE
from wait_registry.records.headers import encode_headers_json

MAX_ERROR_CHARACTERS = 2_048


class Quarantined(NamedTuple):
    """One row of the table ``quarantine``; ``headers_json`` as in ORIGINAL_HEADERS, but of the record itself."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    error: str
    key: bytes | None
    headers_json: str
    body: bytes | None


def quarantined(record: dict[str, Any], error: str) -> Quarantined:
    """Return the row of a record of `sink.read.record_columns.records_of` that can't be decoded, with the ``error``."""
    return Quarantined(
        record[TOPIC],
        record[PARTITION],
        record[OFFSET],
        clamped(record[TIME_MS]),
        error.replace("\0", "\ufffd")[:MAX_ERROR_CHARACTERS],
        record[KEY],
        encode_headers_json(record[HEADERS]).decode(),
        record[VALUE],
    )
