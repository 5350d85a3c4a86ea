"""A wait record holds all of the original under an id of its own; what can't be read as one is refused."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.wait_record_encoding import encode_wait_record
from tests.unit.records.strategies import HEADER_VALUES, INT31, INT63, INT64, ORIGINALS, TEXTS, WAIT_IDS, WAIT_RECORDS
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.targets import record_size
from wait_registry.records import header_names
from wait_registry.records.dead_letter import DEAD_LETTER_EXTRA_BYTES
from wait_registry.records.headers import MAX_JSON_BYTES, Headers, encode_headers_json
from wait_registry.records.original import Original
from wait_registry.records.wait_id import is_wait_id, wait_id
from wait_registry.records.wait_record import (
    ExpiryRule,
    LaterDelivery,
    WaitRecord,
    WaitRecordEncoder,
    decode_wait_record,
)

ENCODER = WaitRecordEncoder("billing", "host-1", "waitreg.dlq", ExpiryRule("dlq", 3))
SYSTEM_NAMES = sorted(
    value for value in vars(header_names).values() if isinstance(value, str) and value.upper() == value and "_" in value
)


@given(WAIT_RECORDS)
def test_a_wait_record_reads_back_as_it_was_written(record: WaitRecord) -> None:
    value, headers = encode_wait_record(record)
    assert decode_wait_record(record.wait_id.encode(), value, headers) == record


@pytest.mark.guarantee("P5.2")
@given(WAIT_RECORDS)
def test_the_processors_encoder_writes_the_same_headers(record: WaitRecord) -> None:
    original = record.original
    assert isinstance(original, Original)
    assert record.group and record.instance and record.dead_letter_topic and record.expiry_policy
    assert record.max_deliveries and record.delivery
    encoder = WaitRecordEncoder(
        record.group,
        record.instance,
        record.dead_letter_topic,
        ExpiryRule(record.expiry_policy, record.max_deliveries, record.redeliver_to or "group"),
    )
    trace = tuple(
        (name, text.encode())
        for name, text in ((header_names.TRACEPARENT, record.traceparent), (header_names.TRACESTATE, record.tracestate))
        if text is not None
    )
    others = tuple(header for header in original.headers if not header[0].startswith("trace"))
    original = original._replace(headers=(*others, *trace))
    headers = encoder.headers(
        original,
        record.wait_id,
        record.expires_at_ms,
        record.delivery,
        LaterDelivery(record.source, idempotency_key=record.idempotency_key),
    )
    assert headers == encode_wait_record(record._replace(original=original))[1]


@given(ORIGINALS, WAIT_IDS, st.lists(st.tuples(st.sampled_from(SYSTEM_NAMES), HEADER_VALUES), min_size=1, max_size=3))
def test_any_bytes_in_any_header_are_read_or_refused_without_another_error(
    original: Original, wait_id: str, damage: list[tuple[str, bytes | None]]
) -> None:
    headers = [*ENCODER.headers(original, wait_id, 0), *damage]
    try:
        record = decode_wait_record(wait_id, original.value or b"", headers)
    except DataError as error:
        assert len(str(error)) < 600
    else:
        assert record.wait_id == wait_id


@given(ORIGINALS, WAIT_IDS, st.sets(st.sampled_from(SYSTEM_NAMES)))
def test_only_topic_and_expiry_are_needed_of_all_headers(original: Original, wait_id: str, missing: set[str]) -> None:
    headers = [header for header in ENCODER.headers(original, wait_id, 0) if header[0] not in missing]
    if missing & {header_names.ORIGINAL_TOPIC, header_names.WAIT_EXPIRATION_TIME}:
        with pytest.raises(DataError, match="missing"):
            decode_wait_record(wait_id, b"x", headers)
    else:
        record = decode_wait_record(wait_id, original.value or b"", headers)
        assert (record.group is None) == (header_names.WAIT_GROUP in missing)
        assert (record.original.partition is None) == (header_names.ORIGINAL_PARTITION in missing)


def test_trace_context_is_carried_on_but_not_what_only_bears_its_name() -> None:
    traceparent = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    odd = (("traceparent", b"a\0b"), ("tracestate", None), ("tracestate", b"x" * 5000), ("traceparent", b""))
    original = Original("orders", 0, 0, 0, "create", None, b"x", (*odd, traceparent))
    headers = ENCODER.headers(original, "019fc448-d29b-8abc-9def-0123456789ab", 0)
    assert [header for header in headers if header[0].startswith("trace")] == [traceparent]


def test_an_error_shows_the_start_of_a_header_and_never_key_or_value() -> None:
    wait_id = "019fc448-d29b-8abc-9def-0123456789ab"
    original = Original("orders", 0, 0, 0, "create", b"key-secret", b"value-secret", (("h", b"header-secret"),))
    headers = ENCODER.headers(original, wait_id, 0)
    for damage in ("WAIT_GROUP", "ORIGINAL_PARTITION", "WAIT_EXPIRATION_TIME", "ORIGINAL_HEADERS", "WAIT_DELIVERY"):
        with pytest.raises(DataError) as refused:
            decode_wait_record(wait_id, b"value-secret", [*headers, (damage, b"\xff" * 10_000)])
        assert damage in str(refused.value)
        assert "secret" not in str(refused.value)
        assert len(str(refused.value)) < 500
    with pytest.raises(DataError) as refused:
        decode_wait_record(b"key-secret", b"value-secret", headers)
    assert "secret" not in str(refused.value)


def test_an_unknown_expiry_policy_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="dlq or redeliver"):
        WaitRecordEncoder("billing", "host-1", "waitreg.dlq", ExpiryRule("keep", 3))


@pytest.mark.guarantee("P4.11")
@given(
    st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=200)), max_size=60).map(tuple),
    st.none() | st.binary(max_size=300),
    st.none() | st.binary(max_size=3000),
)
def test_registrable_records_fit_as_dead_letters(headers: Headers, key: bytes | None, value: bytes | None) -> None:
    limit = 2_000
    encoder = WaitRecordEncoder("billing", "host-1", "waitreg.dlq", ExpiryRule("dlq", 3), limit)
    original = Original("orders", 0, 0, 0, "create", key, value, headers)
    size = len(key or b"") + len(value or b"") + len(encode_headers_json(headers))
    if size > limit:
        with pytest.raises(DataError, match=f"saw {size} bytes before any compression, expected at most .*= {limit}"):
            encoder.headers(original, "019fc448-d29b-8abc-9def-0123456789ab", 0)
    else:
        encoder.headers(original, "019fc448-d29b-8abc-9def-0123456789ab", 0)
        assert record_size(key, value, headers) <= limit + DEAD_LETTER_EXTRA_BYTES // 2


@pytest.mark.guarantee("P4.11")
def test_headers_that_no_reader_would_take_are_not_registered() -> None:
    headers = (("name", bytes(MAX_JSON_BYTES)),)
    original = Original("orders", 0, 0, 0, "create", None, None, headers)
    with pytest.raises(DataError, match=f"at most {MAX_JSON_BYTES}"):
        ENCODER.headers(original, "019fc448-d29b-8abc-9def-0123456789ab", 0)


COORDINATES = st.tuples(TEXTS, st.tuples(TEXTS, INT31, INT63), TEXTS)
NAME = st.text("abc-._", min_size=1, max_size=8)
DISTINCT = st.tuples(NAME, st.tuples(NAME, INT31, INT63), NAME)


@pytest.mark.guarantee("P1.7")
@given(DISTINCT, DISTINCT, INT64)
def test_any_other_coordinate_gives_another_id(
    one: tuple[str, tuple[str, int, int], str], other: tuple[str, tuple[str, int, int], str], timestamp_ms: int
) -> None:
    assert (wait_id(*one, timestamp_ms) == wait_id(*other, timestamp_ms)) == (one == other)


@given(COORDINATES, INT64)
def test_an_id_is_a_uuid_with_its_time(coordinates: tuple[str, tuple[str, int, int], str], timestamp_ms: int) -> None:
    text = wait_id(*coordinates, timestamp_ms)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert is_wait_id(text)
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 76 & 0xF == 8
    assert parsed.int >> 80 == min(max(timestamp_ms, 0), 2**48 - 1)


@given(COORDINATES, COORDINATES, st.lists(st.integers(0, 2**48 - 1), min_size=2, max_size=2, unique=True))
def test_ids_are_ordered_by_time(
    one: tuple[str, tuple[str, int, int], str], other: tuple[str, tuple[str, int, int], str], times_ms: list[int]
) -> None:
    earlier, later = sorted(times_ms)
    assert wait_id(*one, earlier) < wait_id(*other, later)


@given(st.text(max_size=40))
def test_only_a_canonical_uuid_counts_as_an_id(text: str) -> None:
    try:
        canonical = str(uuid.UUID(text)) == text
    except ValueError:
        canonical = False
    assert is_wait_id(text) == canonical
