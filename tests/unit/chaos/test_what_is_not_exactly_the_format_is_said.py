"""The checker reads strictly: it meets only what this project wrote."""

from __future__ import annotations

import pytest

from tests.chaos.history.record import RawRecord
from tests.chaos.history.republished_records import republished
from tests.chaos.history.wait_entries import wait_entry
from tests.chaos.history.wait_id import derived_wait_id
from wait_registry.demo.fingerprint import fingerprint

WAIT_ID = derived_wait_id("cluster", "billing", ("orders", 1, 2), 3)
HEADERS: tuple[tuple[str, bytes | None], ...] = (
    ("ORIGINAL_TOPIC", b"orders"),
    ("ORIGINAL_PARTITION", b"1"),
    ("ORIGINAL_OFFSET", b"2"),
    ("ORIGINAL_TIMESTAMP", b"3"),
    ("ORIGINAL_TIMESTAMP_TYPE", b"create"),
    ("ORIGINAL_KEY", None),
    ("ORIGINAL_HEADERS", b'[["a",null],["a",""],[{"base64":"AA=="},"Yg=="]]'),
    ("ORIGINAL_VALUE_NULL", b"true"),
    ("WAIT_EXPIRATION_UUID", WAIT_ID.encode()),
    ("WAIT_EXPIRATION_TIME", b"2026-11-21T02:20:00.123Z"),
    ("WAIT_GROUP", b"billing"),
    ("WAIT_INSTANCE", b"host"),
    ("WAIT_DELIVERY", b"1"),
    ("WAIT_DEAD_LETTER_TOPIC", b"dlq"),
    ("WAIT_EXPIRY_POLICY", b"dlq"),
    ("WAIT_MAX_DELIVERIES", b"3"),
)
BLOCK = (
    ("WAIT_LINEAGE", b"0"),
    *(
        pair
        for pair in HEADERS
        if pair[0]
        in {
            "ORIGINAL_TOPIC",
            "ORIGINAL_PARTITION",
            "ORIGINAL_OFFSET",
            "ORIGINAL_TIMESTAMP",
            "ORIGINAL_TIMESTAMP_TYPE",
            "WAIT_EXPIRATION_UUID",
            "WAIT_GROUP",
            "WAIT_INSTANCE",
            "WAIT_DELIVERY",
        }
    ),
)


def wait_record(
    headers: tuple[tuple[str, bytes | None], ...] | None, value: bytes | None = b"", key: str = WAIT_ID
) -> RawRecord:
    return RawRecord("wait", 1, 7, 5, key.encode(), value, headers)


def with_header(name: str, value: bytes | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((each, value if each == name else old) for each, old in HEADERS)


def test_a_wait_record_as_it_should_be_is_read() -> None:
    entry = wait_entry(wait_record(HEADERS), committed=True)
    assert entry.registration is not None, entry.unreadable
    assert entry.registration.content == fingerprint(None, None, [("a", None), ("a", b""), ("\0", b"b")])
    assert entry.registration.expires_at_ms == 1_795_227_600_123
    assert not entry.is_tombstone


@pytest.mark.parametrize("name", [name for name, _ in HEADERS])
def test_a_header_that_is_missing_or_stands_there_twice_is_named(name: str) -> None:
    without = tuple(pair for pair in HEADERS if pair[0] != name)
    for headers in (without, (*HEADERS, (name, dict(HEADERS)[name]))):
        assert name in wait_entry(wait_record(headers), committed=True).unreadable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ORIGINAL_PARTITION", b"-1"),
        ("ORIGINAL_OFFSET", b"02"),
        ("ORIGINAL_TIMESTAMP", b"3.0"),
        ("ORIGINAL_TIMESTAMP_TYPE", b"Create"),
        ("ORIGINAL_VALUE_NULL", b"True"),
        ("WAIT_EXPIRATION_UUID", WAIT_ID.upper().encode()),
        ("WAIT_EXPIRATION_TIME", b"2026-11-21T02:20:00Z"),
        ("WAIT_EXPIRATION_TIME", b"2026-13-21T02:20:00.123Z"),
        ("WAIT_GROUP", b""),
        ("WAIT_GROUP", None),
        ("WAIT_INSTANCE", b"\xff"),
        ("WAIT_DELIVERY", b"0"),
        ("WAIT_EXPIRY_POLICY", b"drop"),
        ("ORIGINAL_HEADERS", None),
    ],
)
def test_a_value_that_the_format_does_not_have_is_said(name: str, value: bytes | None) -> None:
    entry = wait_entry(wait_record(with_header(name, value)), committed=True)
    assert entry.registration is None
    assert entry.unreadable
    assert not entry.is_tombstone


def test_a_null_value_beside_bytes_and_a_key_beside_another_id_are_said() -> None:
    assert "ORIGINAL_VALUE_NULL" in wait_entry(wait_record(HEADERS, b"x"), committed=True).unreadable
    assert "the key" in wait_entry(wait_record(HEADERS, key="0" * 36), committed=True).unreadable


def test_a_tombstone_says_its_outcome_and_nothing_else() -> None:
    done = wait_entry(wait_record((("WAIT_OUTCOME", b"done"),), None), committed=True)
    assert (done.is_tombstone, done.outcome) == (True, "done")
    for headers in ((("WAIT_OUTCOME", b"gone"),), (), None):
        assert wait_entry(wait_record(headers, None), committed=True).unreadable


def test_a_block_with_half_a_registration_or_half_a_reason_is_none() -> None:
    assert republished(wait_record(BLOCK), committed=True).lineage is not None
    for half in (("WAIT_PARTITION", b"1"), ("DLQ_REASON", b"failed"), ("DLQ_ERROR_CLASS", b"x")):
        assert republished(wait_record((*BLOCK, half)), committed=True).lineage is None
