"""The wait topic's records, read without the product's codec."""

from __future__ import annotations

from typing import Final

from tests.chaos.history.entries import (
    DEAD_LETTERED,
    DISCARDED,
    DONE,
    EXPIRED,
    REDELIVERED,
    RETRIED,
    Registration,
    WaitEntry,
)
from tests.chaos.history.headers import OLDEST_MS, Headers, Named, UnreadableError, headers_of_json
from tests.chaos.history.record import RawRecord
from wait_registry.demo.fingerprint import fingerprint

OUTCOMES: Final = (DONE, RETRIED, DEAD_LETTERED, DISCARDED, EXPIRED, REDELIVERED)
SOURCE: Final = ("SOURCE_TOPIC", "SOURCE_PARTITION", "SOURCE_OFFSET")
WAIT_HEADERS: Final = (
    "ORIGINAL_TOPIC",
    "ORIGINAL_PARTITION",
    "ORIGINAL_OFFSET",
    "ORIGINAL_TIMESTAMP",
    "ORIGINAL_TIMESTAMP_TYPE",
    "ORIGINAL_KEY",
    "ORIGINAL_HEADERS",
    "ORIGINAL_VALUE_NULL",
    "WAIT_EXPIRATION_UUID",
    "WAIT_EXPIRATION_TIME",
    "WAIT_GROUP",
    "WAIT_INSTANCE",
    "WAIT_DELIVERY",
    "WAIT_DEAD_LETTER_TOPIC",
    "WAIT_EXPIRY_POLICY",
    "WAIT_MAX_DELIVERIES",
    *SOURCE,
)


def wait_entry(record: RawRecord, committed: bool) -> WaitEntry:
    """Read one record of the wait topic; what can't be read is an entry that says why."""
    wait_id = "" if record.key is None else record.key.decode("utf-8", "backslashreplace")
    place = (record.partition, record.offset, record.timestamp_ms, wait_id, committed)
    try:
        if record.headers is None:
            raise UnreadableError("a header's name isn't UTF-8")
        if record.value is None:
            return WaitEntry(*place, outcome=Named(record.headers, ["WAIT_OUTCOME"]).one_of("WAIT_OUTCOME", *OUTCOMES))
        registration = read_registration(wait_id, record.value, record.headers)
    except UnreadableError as error:
        group = dict(record.headers or ()).get("WAIT_GROUP") or b""
        return WaitEntry(*place, unreadable=str(error), group=group.decode("utf-8", "replace"))
    return WaitEntry(*place, registration=registration, group=registration.group)


def read_registration(key: str, value: bytes, headers: Headers) -> Registration:
    """Read a wait record; raise UnreadableError when it isn't exactly what the format says."""
    named = Named(headers, WAIT_HEADERS)
    wait_id = named.wait_id("WAIT_EXPIRATION_UUID")
    if wait_id != key:
        raise UnreadableError(f"WAIT_EXPIRATION_UUID is {wait_id}, the key {key}")
    timestamp_type = named.one_of("ORIGINAL_TIMESTAMP_TYPE", "create", "append", "none")
    is_null = named.one_of("ORIGINAL_VALUE_NULL", "true", "false") == "true"
    if is_null and value:
        raise UnreadableError("ORIGINAL_VALUE_NULL is true beside a value")
    originals = headers_of_json(named.raw("ORIGINAL_HEADERS"))
    return Registration(
        original=named.place("ORIGINAL"),
        timestamp_ms=named.number("ORIGINAL_TIMESTAMP", OLDEST_MS),
        content=fingerprint(named.raw("ORIGINAL_KEY"), None if is_null else value, originals),
        wait_id=wait_id,
        expires_at_ms=named.time_ms("WAIT_EXPIRATION_TIME"),
        group=named.text("WAIT_GROUP"),
        instance=named.text("WAIT_INSTANCE"),
        delivery=named.number("WAIT_DELIVERY", 1),
        dead_letter_topic=named.text("WAIT_DEAD_LETTER_TOPIC"),
        expiry_policy=named.one_of("WAIT_EXPIRY_POLICY", "dlq", "redeliver"),
        max_deliveries=named.number("WAIT_MAX_DELIVERIES", 1),
        source=named.place("SOURCE") if any(name in named for name in SOURCE) else None,
        timestamp_type=timestamp_type,
    )
