"""Encodes any wait record, the legacy format's too; the product's encoder writes only what a processor registers."""

from __future__ import annotations

from wait_registry.records import names
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.times import format_utc_ms
from wait_registry.records.wait_record import WaitRecord


def encode_wait_record(record: WaitRecord) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    """Return the value and the headers of a wait record, whose key is its wait ID; unknown fields get no header."""
    original, source = record.original, record.source
    texts: list[tuple[str, str | int | None]] = [
        (names.ORIGINAL_TOPIC, original.topic),
        (names.ORIGINAL_PARTITION, original.partition),
        (names.ORIGINAL_OFFSET, original.offset),
        (names.ORIGINAL_TIMESTAMP, original.timestamp_ms),
        (names.ORIGINAL_TIMESTAMP_TYPE, original.timestamp_type),
    ]
    further: list[tuple[str, str | int | None]] = [
        (names.ORIGINAL_VALUE_NULL, "true" if original.value is None else "false"),
        (names.WAIT_EXPIRATION_UUID, record.wait_id),
        (names.WAIT_EXPIRATION_TIME, format_utc_ms(record.expires_at_ms)),
        (names.WAIT_GROUP, record.group),
        (names.WAIT_INSTANCE, record.instance),
        (names.WAIT_DELIVERY, record.delivery),
        (names.WAIT_DEAD_LETTER_TOPIC, record.dead_letter_topic),
        (names.WAIT_EXPIRY_POLICY, record.expiry_policy),
        (names.WAIT_MAX_DELIVERIES, record.max_deliveries),
    ]
    if source is not None:
        places = (names.SOURCE_TOPIC, names.SOURCE_PARTITION, names.SOURCE_OFFSET)
        further += zip(places, source, strict=True)
    further += [(names.TRACEPARENT, record.traceparent), (names.TRACESTATE, record.tracestate)]
    headers: list[tuple[str, bytes | None]] = [
        *_known(texts),
        (names.ORIGINAL_KEY, original.key),
        (names.ORIGINAL_HEADERS, encode_headers_json(original.headers)),
        *_known(further),
    ]
    return original.value or b"", headers


def _known(texts: list[tuple[str, str | int | None]]) -> list[tuple[str, bytes | None]]:
    return [(name, str(text).encode()) for name, text in texts if text is not None]
