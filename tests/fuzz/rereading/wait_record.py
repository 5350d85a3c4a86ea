"""A wait record, header by header as the contract lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fuzz.rereading.headers import ATTEMPTS, INT31, INT63, INT64, OwnHeaders, is_wait_id
from tests.fuzz.rereading.headers_json import Refused, reread_headers


def reread_wait_record(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> dict[str, Any]:
    """Return the fields by name, None for what isn't said.

    :raises Refused: it is no wait record.
    :raises Undecided: its headers JSON can't be judged here.
    """
    own = OwnHeaders(headers)
    wait_id = (key or b"").decode("ascii", "replace")
    if not is_wait_id(wait_id) or own.wait_id("WAIT_EXPIRATION_UUID") not in (None, wait_id) or value is None:
        raise Refused
    null_value = own.word("ORIGINAL_VALUE_NULL", "true", "false") == "true"
    if null_value and value != b"":
        raise Refused
    partition = own.number("ORIGINAL_PARTITION", INT31)
    encoded = own.values.get("ORIGINAL_HEADERS")
    fields = {
        "topic": own.text("ORIGINAL_TOPIC"),
        "partition": own.number("PARTITION", INT31) if partition is None else partition,
        "offset": own.number("ORIGINAL_OFFSET", INT63),
        "timestamp_ms": own.number("ORIGINAL_TIMESTAMP", INT64),
        "timestamp_type": own.word("ORIGINAL_TIMESTAMP_TYPE", "create", "append", "none"),
        "key": own.values.get("ORIGINAL_KEY"),
        "value": None if null_value else value,
        "headers": [] if encoded is None else reread_headers(encoded),
        "wait_id": wait_id,
        "expires_at_ms": own.time_ms("WAIT_EXPIRATION_TIME"),
        "group": own.text("WAIT_GROUP"),
        "instance": own.text("WAIT_INSTANCE"),
        "delivery": own.number("WAIT_DELIVERY", ATTEMPTS),
        "dead_letter_topic": own.text("WAIT_DEAD_LETTER_TOPIC"),
        "expiry_policy": own.word("WAIT_EXPIRY_POLICY", "dlq", "redeliver"),
        "max_deliveries": own.number("WAIT_MAX_DELIVERIES", ATTEMPTS),
        "source": _source(own),
        "traceparent": _trace(own.values.get("traceparent")),
        "tracestate": _trace(own.values.get("tracestate")),
    }
    if fields["topic"] is None or fields["expires_at_ms"] is None:
        raise Refused
    return fields


def _source(own: OwnHeaders) -> tuple[Any, ...] | None:
    source = own.text("SOURCE_TOPIC"), own.number("SOURCE_PARTITION", INT31), own.number("SOURCE_OFFSET", INT63)
    if source == (None, None, None):
        return None
    if None in source:
        raise Refused
    return source


def _trace(value: bytes | None) -> str | None:
    if value and len(value) <= 1024 and all(0x20 <= byte <= 0x7E for byte in value):
        return value.decode()
    return None
