"""The processor's messages against what protoc generates from handler.proto."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2
from hypothesis import given
from hypothesis import strategies as st

from processor.handlers.grpc_messages import decode_response, encode_request, handler_descriptor, retry_delay_s
from tests.support.handler_proto import discarded, messages, proto_file, request, retry_info, status_with
from wait_registry.errors import PermanentError
from wait_registry.handler import Discard, Record
from wait_registry.records.original import TIMESTAMP_TYPES

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
CONTENT = st.none() | st.binary(max_size=300)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RECORDS = st.builds(
    Record,
    TEXT,
    st.integers(0, 2**31 - 1),
    INT64,
    INT64,
    CONTENT,
    CONTENT,
    st.lists(st.tuples(TEXT, CONTENT), max_size=5).map(tuple),
    st.integers(1, 2**31 - 1),
    TEXT,
    TEXT,
    st.none() | st.integers(0, 2**42).map(lambda ms: EPOCH + timedelta(milliseconds=ms)),
    TEXT,
    st.sampled_from(TIMESTAMP_TYPES),
)


def of(record: Any, name: str) -> Any:
    """Return a field with presence; None if it is absent."""
    return getattr(record, name) if record.HasField(name) else None


def test_the_descriptor_says_what_handler_proto_says() -> None:
    ours, theirs = handler_descriptor(), proto_file()
    for part in ("service", "options"):
        theirs.ClearField(part)
    for message in theirs.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert ours == theirs


@given(RECORDS, st.integers(1, 2**31 - 1))
def test_generated_code_reads_every_field_as_it_was(record: Record, attempt: int) -> None:
    encoded = encode_request(record, attempt)
    read = request(encoded)
    assert read.SerializeToString() == encoded, "the same bytes as generated code writes"
    assert (read.topic, read.partition, read.offset) == (record.topic, record.partition, record.offset)
    assert (read.timestamp_ms, TIMESTAMP_TYPES[read.timestamp_type]) == (record.timestamp, record.timestamp_type)
    assert (of(read, "key"), of(read, "value")) == (record.key, record.value)
    assert tuple((header.name, of(header, "value")) for header in read.headers) == record.headers
    assert (read.group, read.wait_id, read.idempotency_key) == (record.group, record.wait_id, record.idempotency_key)
    assert (read.delivery, read.attempt) == (record.delivery, attempt)
    expires_at_ms = of(read, "expires_at_ms")
    assert (None if expires_at_ms is None else EPOCH + timedelta(milliseconds=expires_at_ms)) == record.expires_at


def test_an_empty_response_is_done() -> None:
    assert messages()["waitreg_handler.v1.HandleResponse"]().SerializeToString() == b""
    assert decode_response(b"") is None


@given(TEXT)
def test_a_discard_keeps_its_reason(reason: str) -> None:
    assert decode_response(discarded(reason)) == Discard(reason)


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (b"\x12\x00", "unknown field 2"),
        (b"\x08\x01", "unknown field 1"),
        (b"\x0a\x05x", "is no waitreg_handler.v1.HandleResponse"),
        (b"\x0a", "is no waitreg_handler.v1.HandleResponse"),
        (b"\x0b", "is no waitreg_handler.v1.HandleResponse"),
        (b"\xff" * 11, "is no waitreg_handler.v1.HandleResponse"),
        (b"\x0a\x03\x0a\x01\xff", "is no waitreg_handler.v1.HandleResponse"),
        (b"<html>", "is no waitreg_handler.v1.HandleResponse"),
    ],
)
def test_a_response_that_is_not_known_never_counts_as_done(response: bytes, said: str) -> None:
    with pytest.raises(PermanentError, match="response") as refused:
        decode_response(response)
    assert said in str(refused.value)


@given(st.integers(0, 10_000), st.integers(0, 999_999_999))
def test_the_delay_of_a_retry_info_is_read(seconds: int, nanos: int) -> None:
    status = status_with(error_details_pb2.ErrorInfo(reason="BUSY"), retry_info(seconds, nanos))
    assert retry_delay_s(status) == pytest.approx(seconds + nanos / 1e9)


@pytest.mark.parametrize(
    ("status", "delay_s"),
    [
        (None, None),
        ("text", None),
        (b"", None),
        (b"\xff", None),
        (status_with(), None),
        (status_with(duration_pb2.Duration(seconds=9)), None),
        (status_with(retry_info(0)), 0.0),
        (status_with(retry_info(-9)), 0.0),
    ],
)
def test_details_without_a_delay_ask_for_none(status: bytes | str | None, delay_s: float | None) -> None:
    assert retry_delay_s(status) == delay_s
