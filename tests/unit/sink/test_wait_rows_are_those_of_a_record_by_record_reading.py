"""P1, P8: reading wait records a column at a time gives the rows and the quarantine of reading them one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sink.earlier_waits import EarlierWaits
from sink.wait_rows import rows_one_by_one, wait_rows
from tests.unit.records.strategies import HEADER_NAMES, HEADER_VALUES, INT64, ORIGINALS, SOURCES, TIMES_MS, WAIT_RECORDS
from tests.unit.sink.batches import Row, batch_of
from tests.unit.sink.registrations import (
    ENCODER,
    in_chunks,
    quarantined_in_order,
    registration,
    rows_in_order,
    wait_id,
    with_header,
)
from wait_registry.records import names
from wait_registry.records.wait_record import encode_wait_record

SYSTEM_NAMES = st.sampled_from([name for name, _ in registration(0).headers or ()])
OPTIONAL_NAMES = st.sampled_from([names.SOURCE_TOPIC, names.SOURCE_OFFSET, names.TRACEPARENT, names.TRACESTATE])
OTHER_NAMES = st.sampled_from([names.LEGACY_PARTITION, names.WAIT_OUTCOME, "b3", "", "a\0b"])
KEYS = st.sampled_from([wait_id(1).encode(), wait_id(2).encode(), wait_id(3).encode()])
ODD_KEYS = st.sampled_from([None, b"", b"\xff", wait_id(1).upper().encode(), wait_id(1).encode() + b"\n"])

# Near what the encoder writes: in its form, but hardly ever what a reader may take unseen.
NUMBERS = INT64.map(str) | st.sampled_from(["007", "-0", "+5", " 5", "5 ", "1_0", "٣", "9" * 19, "9" * 20, ""])
TIMES = st.from_regex(
    r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\.[0-9]{3}Z\Z"
) | st.sampled_from(
    ["2026-11-21T02:20Z", "2026-11-21T02:20:00.123", "2026-11-21T02:20:00.123+01:00", "0000-01-01T00:00:00.000Z"]
)
WORDS = st.sampled_from(["create", "append", "none", "dlq", "redeliver", "true", "false", "keep", "True", "a\0b", "é"])
_JSON_NAMES = st.sampled_from(["a", "é", "€", "𝄞", "\x7f", "/", r"\u0061", r"\u0000", r"\n", r"\"", '"', "\t", " "])
_JSON_VALUES = st.sampled_from(['"QQ=="', '"QR=="', '"QUI="', '"QUJ="', '"QUJD"', '""', '"QQ"', "null", "1", '"-_=="'])
_PAIRS = st.tuples(_JSON_NAMES, _JSON_VALUES).map(lambda pair: f'["{pair[0]}",{pair[1]}]')
JSON = st.lists(_PAIRS, max_size=3).map(lambda pairs: f"[{','.join(pairs)}]") | st.sampled_from(
    ["", "[", "{}", '{"a":"b"}', "[ ]", "[[]]", '[["a"]]', "[],", "null", '[["a",null],]', '[["a",null]["b",null]]']
)
VISIBLE = st.integers(509, 515).map("v".__mul__) | st.sampled_from(["v" * 1024, "v" * 1025, "\x1f", "\x7f", "~ "])
BYTES = st.one_of(NUMBERS, TIMES, WORDS, JSON, VISIBLE).map(str.encode)
VALUES = st.one_of(BYTES, HEADER_VALUES, st.sampled_from([b"\xff", b"\xed\xa0\x80", b'[["\xff",null]]', b"a\0"]))

Change = Callable[[Row], Row]


def _drop(name: str) -> Change:
    return lambda row: replace(row, headers=tuple(header for header in row.headers or () if header[0] != name))


def _insert(index: int, name: str, value: bytes | None) -> Change:
    def inserted(row: Row) -> Row:
        headers = list(row.headers or ())
        headers.insert(index, (name, value))
        return replace(row, headers=tuple(headers))

    return inserted


def _put(name: str, value: bytes | None) -> Change:
    return lambda row: row if row.headers is None else with_header(row, name, value)


ANY_NAME = SYSTEM_NAMES | OPTIONAL_NAMES | OTHER_NAMES | HEADER_NAMES.filter(lambda name: name.isascii())
changes = st.one_of(
    st.builds(_put, SYSTEM_NAMES, VALUES),
    st.builds(_put, SYSTEM_NAMES | OPTIONAL_NAMES, VALUES),
    st.builds(_drop, SYSTEM_NAMES),
    st.builds(_insert, st.integers(0, 20), ANY_NAME, VALUES),
    st.sampled_from([b"", b"x", None]).map(lambda value: lambda row: replace(row, value=value)),
    ODD_KEYS.map(lambda key: lambda row: replace(row, key=key)),
    st.just(lambda row: replace(row, headers=None)),
)

encoded = st.builds(
    lambda original, key, expires_at_ms, source, trace: Row(
        key,
        original.value or b"",
        0,
        0,
        headers=tuple(ENCODER.headers(original, key.decode(), expires_at_ms, source=source, trace=trace)),
    ),
    ORIGINALS,
    KEYS,
    TIMES_MS,
    st.none() | SOURCES,
    st.sampled_from([None, (), ((names.TRACEPARENT, b"00-1"),), ((names.TRACESTATE, b"a"), (names.TRACEPARENT, b"b"))]),
)
of_others = st.builds(
    lambda record, content: Row(record.wait_id.encode(), content[0], 0, 0, headers=tuple(content[1])),
    record := st.shared(WAIT_RECORDS, key="record"),
    record.map(encode_wait_record),
)


@st.composite
def changed(draw: st.DrawFn) -> Row:
    row = draw(encoded | of_others)
    for change in draw(st.lists(changes, max_size=2)):
        row = change(row)
    return row


def assert_same(rows: list[Row], lengths: list[int], at_once: int) -> None:
    batch = batch_of([replace(row, offset=offset) for offset, row in enumerate(rows)])
    earlier = EarlierWaits(batch).before
    found = wait_rows("wait", in_chunks(batch, lengths), earlier, at_once)
    expected = rows_one_by_one("wait", batch, earlier)
    assert rows_in_order(found) == rows_in_order(expected)
    assert quarantined_in_order(found) == quarantined_in_order(expected)


@given(st.lists(changed(), max_size=12), st.lists(st.integers(0, 4), max_size=4), st.integers(1, 12))
def test_whatever_records_come_and_however_they_are_cut(rows: list[Row], lengths: list[int], at_once: int) -> None:
    assert_same(rows, lengths, at_once)


@pytest.mark.guarantee("P1.17")
@given(SYSTEM_NAMES, st.lists(VALUES, max_size=8))
@example(names.WAIT_EXPIRATION_TIME, [b"2026-02-29T00:00:00.000Z", b"2024-02-29T23:59:59.999Z"])
def test_whatever_one_header_holds(name: str, values: list[bytes | None]) -> None:
    assert_same([with_header(registration(number), name, value) for number, value in enumerate(values)], [], 100)


@given(st.lists(TIMES.map(str.encode), min_size=1, max_size=8))
def test_whatever_time_is_written_as_the_encoder_would(times: list[bytes]) -> None:
    assert_same([with_header(registration(0), names.WAIT_EXPIRATION_TIME, time) for time in times], [], 100)


@given(st.lists(JSON.map(str.encode), min_size=1, max_size=8))
def test_whatever_the_original_headers_are_written_as(texts: list[bytes]) -> None:
    assert_same([with_header(registration(0), names.ORIGINAL_HEADERS, text) for text in texts], [], 100)


@given(st.lists(VISIBLE.map(str.encode) | HEADER_VALUES, min_size=1, max_size=8))
def test_whatever_is_carried_for_trace_context(values: list[bytes | None]) -> None:
    traced = registration(0, trace=((names.TRACEPARENT, b"00-1"), (names.TRACESTATE, b"a=b")))
    assert_same([with_header(traced, names.TRACESTATE, value) for value in values], [], 100)


def test_where_the_last_record_of_a_key_cannot_be_read_the_one_before_it_stands() -> None:
    unreadable = with_header(registration(0), names.WAIT_DELIVERY, b"0")
    assert_same([registration(0), unreadable, registration(1)], [], 100)
    batch = batch_of([replace(registration(0), offset=0), replace(unreadable, offset=1)])
    found = wait_rows("wait", batch.slice(1), EarlierWaits(batch).before)
    assert (found.count, [record.offset for record in found.unreadable]) == (1, [1])
