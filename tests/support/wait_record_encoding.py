"""Encodes any wait record, the legacy format's too; the product's encoder writes only what a processor registers."""

from __future__ import annotations

from wait_registry.records import header_names
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.times import format_utc_ms
from wait_registry.records.wait_record import WaitRecord


def encode_wait_record(record: WaitRecord) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    """Return the value and the headers of a wait record, whose key is its wait ID; unknown fields get no header."""
    original, source = record.original, record.source
    texts: list[tuple[str, str | int | None]] = [
        (header_names.ORIGINAL_TOPIC, original.topic),
        (header_names.ORIGINAL_PARTITION, original.partition),
        (header_names.ORIGINAL_OFFSET, original.offset),
        (header_names.ORIGINAL_TIMESTAMP, original.timestamp_ms),
        (header_names.ORIGINAL_TIMESTAMP_TYPE, original.timestamp_type),
    ]
    further: list[tuple[str, str | int | None]] = [
        (header_names.ORIGINAL_VALUE_NULL, "true" if original.value is None else "false"),
        (header_names.WAIT_EXPIRATION_UUID, record.wait_id),
        (header_names.WAIT_EXPIRATION_TIME, format_utc_ms(record.expires_at_ms)),
        (header_names.WAIT_GROUP, record.group),
        (header_names.WAIT_INSTANCE, record.instance),
        (header_names.WAIT_DELIVERY, record.delivery),
        (header_names.WAIT_DEAD_LETTER_TOPIC, record.dead_letter_topic),
        (header_names.WAIT_EXPIRY_POLICY, record.expiry_policy),
        (header_names.WAIT_MAX_DELIVERIES, record.max_deliveries),
        (header_names.WAIT_REDELIVER_TO, record.redeliver_to),
        (header_names.WAIT_IDEMPOTENCY_KEY, record.idempotency_key),
    ]
    if source is not None:
        places = (header_names.SOURCE_TOPIC, header_names.SOURCE_PARTITION, header_names.SOURCE_OFFSET)
        further += zip(places, source, strict=True)
    further += [(header_names.TRACEPARENT, record.traceparent), (header_names.TRACESTATE, record.tracestate)]
    headers: list[tuple[str, bytes | None]] = [
        *_known(texts),
        (header_names.ORIGINAL_KEY, original.key),
        (header_names.ORIGINAL_HEADERS, encode_headers_json(original.headers)),
        *_known(further),
    ]
    return original.value or b"", headers


def _known(texts: list[tuple[str, str | int | None]]) -> list[tuple[str, bytes | None]]:
    return [(name, str(text).encode()) for name, text in texts if text is not None]
