"""P6: what a processor registers is read without a Python object a record; anything else is decoded one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sink import wait_rows as module
from sink.uniform_waits import MAX_LAYOUTS
from sink.wait_rows import rows_one_by_one, wait_rows
from tests.unit.sink.batches import Headers, Row, batch_of
from tests.unit.sink.registrations import (
    ORIGINAL,
    in_chunks,
    quarantined_in_order,
    registration,
    rows_in_order,
    wait_id,
    with_header,
)
from wait_registry.records import names
from wait_registry.records.original import Source
from wait_registry.records.wait_record import decode_wait_record

TRACEPARENT = (names.TRACEPARENT, b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
TRACESTATE = (names.TRACESTATE, b"vendor=value")
SOURCE = Source("orders.retry", 1, 7)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Collect the keys of the records that are decoded one by one."""
    keys: list[bytes] = []

    def counted(key: bytes, value: bytes | None, headers: Headers | None) -> Any:
        keys.append(key)
        return decode_wait_record(key, value, headers)

    monkeypatch.setattr(module, "decode_wait_record", counted)
    yield keys


def assert_same(rows: list[Row], decoded: list[bytes], expected: list[Row], at_once: int = 5_000) -> None:
    """Assert that exactly the expected records are decoded one by one, and that this can't be seen in the result."""
    batch = batch_of(rows)
    found = wait_rows("wait", in_chunks(batch, [1, 2]), lambda key, partition, offset: (), at_once)
    assert sorted(decoded, key=repr) == sorted((row.key for row in expected), key=repr)
    one_by_one = rows_one_by_one("wait", batch, lambda key, partition, offset: ())
    assert rows_in_order(found) == rows_in_order(one_by_one)
    assert quarantined_in_order(found) == quarantined_in_order(one_by_one)


ORDINARY = {
    "plain": registration(0),
    "delivered again": registration(1, source=SOURCE),
    "traced": registration(2, trace=(TRACEPARENT, TRACESTATE)),
    "traced, the other way round": registration(3, trace=(TRACESTATE, TRACEPARENT)),
    "traced and delivered again": registration(4, source=SOURCE, trace=(TRACEPARENT,)),
    "without a value": registration(5, ORIGINAL._replace(value=None)),
    "with an empty value": registration(6, ORIGINAL._replace(value=b"", key=b"")),
    "without a key": registration(7, ORIGINAL._replace(key=None)),
    "without a timestamp": registration(8, ORIGINAL._replace(timestamp_ms=-1, timestamp_type="none")),
    "with a timestamp that no calendar has": registration(9, ORIGINAL._replace(timestamp_ms=10**17)),
    "without headers": registration(10, ORIGINAL._replace(headers=())),
    "with many headers": registration(11, ORIGINAL._replace(headers=(("é", None), ("", b""), ("b", b"\xff" * 5)) * 3)),
    "of the first expiry there is": registration(12, expires_at_ms=module.SHOWABLE_MS.start),
    "of the last expiry there is": registration(13, expires_at_ms=module.SHOWABLE_MS.stop - 1),
}


@pytest.mark.guarantee("P7.13")
@pytest.mark.parametrize("row", ORDINARY.values(), ids=ORDINARY)
def test_no_ordinary_record_is_decoded_one_by_one(row: Row, decoded: list[bytes]) -> None:
    assert_same([row], decoded, [])


def test_nor_is_one_among_records_with_other_headers(decoded: list[bytes]) -> None:
    assert_same(list(ORDINARY.values()), decoded, [])


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 100])
def test_nor_does_it_matter_how_many_are_read_at_once(at_once: int, decoded: list[bytes]) -> None:
    assert_same(list(ORDINARY.values()), decoded, [], at_once)


def test_nor_how_many_others_are_unlike_any(decoded: list[bytes]) -> None:
    ordinary = [replace(registration(number), offset=number) for number in range(2)]
    unlike = [
        replace(registration(number), headers=((f"header-{number}", b""), *(registration(number).headers or ())))
        for number in range(10, 10 + 2 * MAX_LAYOUTS)
    ]
    batch = batch_of([*unlike, *ordinary])
    assert wait_rows("wait", batch, lambda key, partition, offset: ()).count == len(unlike) + 2
    assert not {wait_id(0).encode(), wait_id(1).encode()} & set(decoded)
    assert len(decoded) == len(unlike) - (MAX_LAYOUTS - 1)


def test_headers_that_are_not_the_systems_are_passed_over(decoded: list[bytes]) -> None:
    row = registration(0)
    assert_same([replace(row, headers=(("b3", None), *(row.headers or ()), ("", b"\xff")))], decoded, [])


def test_no_records_make_no_rows() -> None:
    rows = wait_rows("wait", batch_of([]), lambda key, partition, offset: ())
    assert (rows.count, rows.unreadable, rows_in_order(rows)) == (0, [], [])


def changed(name: str, value: bytes | None) -> Row:
    return with_header(registration(20, source=SOURCE, trace=(TRACEPARENT, TRACESTATE)), name, value)


def without(name: str) -> Row:
    row = registration(20, source=SOURCE)
    return replace(row, headers=tuple(header for header in row.headers or () if header[0] != name))


def beside(name: str, value: bytes | None) -> Row:
    row = registration(20, trace=(TRACEPARENT,))
    return replace(row, headers=(*(row.headers or ()), (name, value)))


def of_key(key: bytes) -> Row:
    return replace(changed(names.WAIT_EXPIRATION_UUID, key), key=key)


ODD = {
    "a name twice": beside(names.WAIT_GROUP, b"billing"),
    "a trace twice": beside(*TRACEPARENT),
    "a foreign name twice": replace(beside("b3", b""), headers=(("b3", b""), *(beside("b3", b"").headers or ()))),
    "a name of the legacy format": beside(names.LEGACY_PARTITION, b"3"),
    "a missing header": without(names.WAIT_INSTANCE),
    "half of a source": without(names.SOURCE_OFFSET),
    "no headers": replace(registration(20), headers=()),
    "null headers": replace(registration(20), headers=None),
    "a tombstone": replace(registration(20), value=None),
    "no key": replace(registration(20), key=None),
    "a key that is not UTF-8": of_key(b"\xff" * 36),
    "a key in upper case": of_key(wait_id(20).upper().encode()),
    "a key that ends in a newline": of_key(wait_id(20).encode() + b"\n"),
    "the id of another": changed(names.WAIT_EXPIRATION_UUID, wait_id(21).encode()),
    "no id": changed(names.WAIT_EXPIRATION_UUID, None),
    "an id that is none": changed(names.WAIT_EXPIRATION_UUID, b"\xff"),
    "a value beside the word that it is null": changed(names.ORIGINAL_VALUE_NULL, b"true"),
    "no word on whether the value is null": changed(names.ORIGINAL_VALUE_NULL, None),
    "another word on whether the value is null": changed(names.ORIGINAL_VALUE_NULL, b"yes"),
    "null text": changed(names.WAIT_GROUP, None),
    "empty text": changed(names.ORIGINAL_TOPIC, b""),
    "text with NUL": changed(names.WAIT_INSTANCE, b"a\0b"),
    "text that is not UTF-8": changed(names.WAIT_DEAD_LETTER_TOPIC, b"\xed\xa0\x80"),
    "source text that is not UTF-8": changed(names.SOURCE_TOPIC, b"\xff"),
    "an unknown choice": changed(names.WAIT_EXPIRY_POLICY, b"keep"),
    "an unknown timestamp type": changed(names.ORIGINAL_TIMESTAMP_TYPE, b"Create"),
    "a null number": changed(names.WAIT_DELIVERY, None),
    "an empty number": changed(names.ORIGINAL_OFFSET, b""),
    "a number with leading zeros": changed(names.ORIGINAL_PARTITION, b"003"),
    "a large number with leading zeros": changed(names.ORIGINAL_OFFSET, b"042"),
    "a number with a sign": changed(names.SOURCE_OFFSET, b"+7"),
    "a negative nought": changed(names.ORIGINAL_TIMESTAMP, b"-0"),
    "a number with blanks": changed(names.WAIT_MAX_DELIVERIES, b" 3"),
    "a number that ends in a newline": changed(names.ORIGINAL_OFFSET, b"42\n"),
    "a number that is not ASCII": changed(names.ORIGINAL_OFFSET, "٣".encode()),
    "a number below its bounds": changed(names.WAIT_DELIVERY, b"0"),
    "a large number below its bounds": changed(names.ORIGINAL_OFFSET, b"-1"),
    "a number beyond its bounds": changed(names.SOURCE_PARTITION, b"2147483648"),
    "the largest number that there is": changed(names.ORIGINAL_OFFSET, b"9223372036854775807"),
    "a larger one": changed(names.ORIGINAL_TIMESTAMP, b"9223372036854775808"),
    "a time without a zone": changed(names.WAIT_EXPIRATION_TIME, b"2026-11-21T02:20:00.123"),
    "a time without ms": changed(names.WAIT_EXPIRATION_TIME, b"2026-11-21T02:20:00Z"),
    "a time of another zone": changed(names.WAIT_EXPIRATION_TIME, b"2026-11-21T02:20:00.123+01:00"),
    "a day that no calendar has": changed(names.WAIT_EXPIRATION_TIME, b"2026-02-30T02:20:00.123Z"),
    "an hour that no clock shows": changed(names.WAIT_EXPIRATION_TIME, b"2026-11-21T24:00:00.000Z"),
    "a leap second": changed(names.WAIT_EXPIRATION_TIME, b"2016-12-31T23:59:60.000Z"),
    "a year before the first": changed(names.WAIT_EXPIRATION_TIME, b"0000-12-31T23:59:59.999Z"),
    "a time that is not UTF-8": changed(names.WAIT_EXPIRATION_TIME, b"2026-11-21T02:20:00.123\xff"),
    "null original headers": changed(names.ORIGINAL_HEADERS, None),
    "original headers that are no JSON": changed(names.ORIGINAL_HEADERS, b"[["),
    "original headers that are not UTF-8": changed(names.ORIGINAL_HEADERS, b'[["\xff",null]]'),
    "original headers of the legacy format": changed(names.ORIGINAL_HEADERS, b'{"tenant":"acme"}'),
    "original headers with blanks": changed(names.ORIGINAL_HEADERS, b'[["tenant", null]]'),
    "original headers with escapes": changed(names.ORIGINAL_HEADERS, rb'[["\u0000\u0061",null]]'),
    "original headers with base64 of another alphabet": changed(names.ORIGINAL_HEADERS, b'[["tenant","-_=="]]'),
    "original headers with base64 that has bits to spare": changed(names.ORIGINAL_HEADERS, b'[["tenant","QR=="]]'),
    "a trace that is null": changed(names.TRACEPARENT, None),
    "a trace that is none": changed(names.TRACEPARENT, b"a\0b"),
    "a trace that is not ASCII": changed(names.TRACESTATE, "é".encode()),
    "a long trace": changed(names.TRACESTATE, b"v" * 1_024),
    "an overlong trace": changed(names.TRACESTATE, b"v" * 1_025),
}


@pytest.mark.parametrize("row", ODD.values(), ids=ODD)
def test_an_odd_record_alone_is_decoded_one_by_one(row: Row, decoded: list[bytes]) -> None:
    traced = [registration(number, source=SOURCE, trace=(TRACEPARENT, TRACESTATE)) for number in (14, 15)]
    assert_same([*ORDINARY.values(), traced[0], row, traced[1]], decoded, [row])


def test_a_name_that_holds_what_separates_names_is_one_name(decoded: list[bytes]) -> None:
    row = registration(0)
    joined = replace(registration(1), headers=(("\0".join(name for name, _ in row.headers or ()), b"x"),))
    assert_same([row, joined], decoded, [joined])


def test_original_headers_larger_than_any_reader_takes_are_refused(decoded: list[bytes]) -> None:
    json = b'[["h","' + b"QUJD" * (4 * 1024 * 1024) + b'"]]'
    row = changed(names.ORIGINAL_HEADERS, json)
    assert_same([registration(0), row], decoded, [row])
