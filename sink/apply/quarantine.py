"""Records of the wait topic that can't be read: kept whole, so that nothing is lost and nothing is held up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sink.read.batch import HEADERS, KEY, OFFSET, PARTITION, TIME_MS, VALUE
from wait_registry.records.headers import encode_headers_json

MAX_ERROR_CHARACTERS = 2_048


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One row of the table ``quarantine``; ``headers_json`` as in ORIGINAL_HEADERS, but of the record itself."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    error: str
    key: bytes | None
    headers_json: str
    body: bytes | None


def quarantined(topic: str, record: dict[str, Any], error: str) -> Quarantined:
    """Return the row of a record (as `sink.read.batch.records_of` gives it) that ``error`` says can't be read."""
    return Quarantined(
        topic,
        record[PARTITION],
        record[OFFSET],
        record[TIME_MS],
        error.replace("\0", "\ufffd")[:MAX_ERROR_CHARACTERS],
        record[KEY],
        encode_headers_json(record[HEADERS]).decode(),
        record[VALUE],
    )
