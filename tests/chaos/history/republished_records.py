"""Dead letters and redeliveries, read without the product's codec."""

from __future__ import annotations

from typing import Final

from tests.chaos.history.entries import EXPIRED, FAILED, MALFORMED, UNREGISTRABLE, Lineage, Republished
from tests.chaos.history.headers import OLDEST_MS, Headers, Named, UnreadableError
from tests.chaos.history.record import RawRecord, content_of
from wait_registry.demo.fingerprint import fingerprint

REASONS: Final = (FAILED, EXPIRED, "blocked", MALFORMED, UNREGISTRABLE)
ERROR_NAMES: Final = ("DLQ_ERROR_CLASS", "DLQ_ERROR_MESSAGE", "DLQ_ERROR_STACKTRACE")
DEAD_LETTER_NAMES: Final = ("DLQ_REASON", *ERROR_NAMES, "DLQ_TIME")
BLOCK_NAMES: Final = frozenset(
    {
        *DEAD_LETTER_NAMES,
        "ORIGINAL_TOPIC",
        "ORIGINAL_PARTITION",
        "ORIGINAL_OFFSET",
        "ORIGINAL_TIMESTAMP",
        "ORIGINAL_TIMESTAMP_TYPE",
        "WAIT_EXPIRATION_UUID",
        "WAIT_PARTITION",
        "WAIT_OFFSET",
        "WAIT_GROUP",
        "WAIT_INSTANCE",
        "WAIT_DELIVERY",
    }
)


def republished(record: RawRecord, committed: bool) -> Republished:
    """Read one record of a dead letter or redelivery topic; what we can't have written has no lineage."""
    place = (record.topic, record.partition, record.offset, record.timestamp_ms, committed)
    if record.headers is None:
        return Republished(*place, content_of(record))
    count = original_headers(record.headers)
    try:
        if count is None:
            raise UnreadableError("no lineage block")
        named = Named(record.headers[count + 1 :], BLOCK_NAMES)
        lineage = _lineage(named)
        reason, time_ms = ("", None)
        if any(name in named for name in DEAD_LETTER_NAMES):
            reason, time_ms = named.one_of("DLQ_REASON", *REASONS), named.time_ms("DLQ_TIME")
        texts = [named.words(name) for name in ERROR_NAMES]
    except UnreadableError:
        return Republished(*place, content_of(record))
    content = fingerprint(record.key, record.value, record.headers[:count])
    return Republished(*place, content, lineage, reason, time_ms, *texts)


def original_headers(headers: Headers) -> int | None:
    """Return how many headers stand before the block; None without a block."""
    for index in range(len(headers) - 1, -1, -1):
        name, value = headers[index]
        if name == "WAIT_LINEAGE":
            return index if value == str(index).encode() else None
        if name not in BLOCK_NAMES:
            return None
    return None


def _lineage(named: Named) -> Lineage:
    registered = "WAIT_PARTITION" in named or "WAIT_OFFSET" in named
    return Lineage(
        original=named.place("ORIGINAL"),
        timestamp_ms=named.number("ORIGINAL_TIMESTAMP", OLDEST_MS),
        wait_id=named.wait_id("WAIT_EXPIRATION_UUID"),
        registration=(named.number("WAIT_PARTITION"), named.number("WAIT_OFFSET")) if registered else None,
        group=named.text("WAIT_GROUP"),
        instance=named.text("WAIT_INSTANCE"),
        delivery=named.number("WAIT_DELIVERY", 1),
        timestamp_type=named.one_of("ORIGINAL_TIMESTAMP_TYPE", "create", "append", "none"),
    )
