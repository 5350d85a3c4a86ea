"""Wait records become rows or go to quarantine, however the batch is cut; headers are what reading one by one finds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.types.json import Jsonb

from sink.condense.copy_bytes import copy_rows_of
from sink.condense.header_values import header_values, times_ms
from sink.condense.quarantined import Quarantined
from sink.condense.wait_rows import COLUMNS, EarlierWaits, wait_rows
from sink.position import moment, showable
from sink.read.record_columns import HEADERS, KEY, OFFSET, headers_of, records_of
from tests.unit.records.strategies import HEADER_VALUES, INT64
from tests.unit.sink.batches import Headers, Row, batch_of
from tests.unit.sink.copied import Fields, rows_in
from wait_registry.errors import DataError
from wait_registry.records import header_names
from wait_registry.records.headers import encode_headers_json
from wait_registry.records.original import Original
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder, decode_wait_record

Values = tuple[Any, ...]

_OFFSET = list(COLUMNS).index("wait_offset")
A, B, C = b"a", b"b", b"c"
ENCODER = WaitRecordEncoder("billing", "host-1", "waitreg.dlq", ExpiryRule("dlq", 3))
ORIGINAL = Original("orders", 3, 42, 1_795_227_600_000, "create", b"customer-1", b"paid", (("tenant", b"acme"),))


def as_copied(rows: Iterable[tuple[Any, ...]], types: Mapping[str, str]) -> list[Values]:
    """Return what COPY takes of each value; psycopg raises for what a column can't hold."""
    oids = [psycopg.postgres.types[name].oid for name in types.values()]
    dumper = Transformer()
    dumper.set_dumper_types(oids, psycopg.pq.Format.BINARY)
    return [tuple(dumper.dump_sequence(row, [PyFormat.BINARY] * len(oids))) for row in rows]


def registration(offset: int) -> Row:
    """Return a wait record that the real encoder wrote, with an ID of its own."""
    wait_id = f"019fc448-d29b-8abc-9def-{offset:012x}"
    headers = ENCODER.headers(ORIGINAL, wait_id, 1_795_314_000_123, 1 + offset % 3)
    return Row(wait_id.encode(), ORIGINAL.value, offset % 4, offset, headers=tuple(headers))


def with_header(row: Row, name: str, value: bytes | None) -> Row:
    """Return the record with another value in one header, which stays in its place."""
    return replace(row, headers=tuple((key, value if key == name else held) for key, held in row.headers or ()))


def in_chunks(batch: pa.Table, lengths: Sequence[int]) -> pa.Table:
    """Return the same records in chunks of these lengths, which are parts of longer ones; the rest is the last."""
    chunks, start = [], 0
    for length in lengths:
        chunks.append(batch.slice(start, length))
        start += length
    return pa.concat_tables([*chunks, batch.slice(start)])


SYSTEM_NAMES = st.sampled_from([name for name, _ in registration(0).headers or ()])
TEXTS = INT64.map(str) | st.sampled_from(
    ["007", "-0", "9" * 20, "", "2026-02-29T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "[]", '[["a"]]', "null", "a\0b"]
)
VALUES = st.one_of(TEXTS.map(str.encode), HEADER_VALUES, st.sampled_from([b"\xff", b"\xed\xa0\x80"]))
changed = st.builds(with_header, st.integers(0, 50).map(registration), SYSTEM_NAMES, VALUES)
odd = st.builds(replace, changed, headers=st.none()) | st.builds(replace, changed, value=st.sampled_from([b"", b"x"]))


def with_headers(row: Row, more: Headers) -> Row:
    """Return the record with further headers, as another client may write them."""
    return replace(row, headers=(*(row.headers or ()), *more))


foreign_headers = st.lists(st.tuples(SYSTEM_NAMES | st.just("other"), st.none() | VALUES), max_size=3).map(tuple)
foreign = st.builds(with_headers, st.integers(0, 50).map(registration), foreign_headers)


def read(
    survivors: pa.Table, earlier: EarlierWaits, by_columns_from: int = 0
) -> tuple[list[Fields], list[Quarantined]]:
    unreadable: list[Quarantined] = []
    copied = copy_rows_of(wait_rows(survivors, earlier, unreadable, by_columns_from), COLUMNS)
    rows = rows_in(copied.portions)
    assert len(rows) == copied.count
    return sorted(rows, key=itemgetter(_OFFSET)), sorted(unreadable, key=attrgetter("offset"))


def decoded(row: Row) -> Values | None:
    """Return what a record's row has in COPY, by the codec and psycopg; None for what is quarantined."""
    try:
        wait = decode_wait_record(row.key, row.value, row.headers)
    except DataError:
        return None
    original = wait.original
    values = {
        **{name: getattr(wait, name) for name in wait._fields if name in COLUMNS},
        "wait_expiration_uuid": wait.wait_id,
        **{f"original_{name}": getattr(original, name) for name in original._fields},
        "original_timestamp": showable(original.timestamp_ms),
        "original_headers": Jsonb(encode_headers_json(original.headers), dumps=bytes),
        "body": original.value,
        "consumer_group": wait.group,
        "idempotency_key": wait.idempotency_key or wait.wait_id,
        "wait_expiration_time": moment(wait.expires_at_ms),
        "wait_topic": row.topic,
        "wait_partition": row.partition,
        "wait_offset": row.offset,
        **dict(zip(("source_topic", "source_partition", "source_offset"), wait.source or (None,) * 3, strict=True)),
    }
    [fields] = as_copied([tuple(values[name] for name in COLUMNS)], COLUMNS)
    return tuple(None if field is None else bytes(field) for field in fields)


@pytest.mark.guarantee("P1.17")
@given(st.lists(changed | odd | foreign, max_size=12))
def test_columns_hold_what_the_codec_reads_of_each_record(rows: list[Row]) -> None:
    numbered = [replace(row, offset=offset) for offset, row in enumerate(rows)]
    batch = batch_of(numbered)
    whole, unreadable = read(batch, EarlierWaits(batch.slice(0, 0)))
    expected = {row.offset: decoded(row) for row in numbered}
    assert whole == [fields for fields in expected.values() if fields is not None]
    assert [record.offset for record in unreadable] == [offset for offset, row in expected.items() if row is None]


@pytest.mark.guarantee("P1.17")
@given(st.lists(changed | odd | foreign, max_size=12), st.lists(st.integers(0, 4), max_size=4), st.integers(1, 12))
def test_every_record_is_a_row_or_quarantined_in_any_batches(rows: list[Row], lengths: list[int], at_once: int) -> None:
    batch = batch_of([replace(row, offset=offset) for offset, row in enumerate(rows)])
    nothing_before = EarlierWaits(batch.slice(0, 0))
    whole, unreadable = read(batch, nothing_before)
    assert read(in_chunks(batch, lengths), nothing_before) == (whole, unreadable)
    assert read(batch, nothing_before, len(rows) + 1) == (whole, unreadable)
    assert list(records_of(in_chunks(batch, lengths), at_once)) == list(records_of(batch))
    assert len(whole) + len(unreadable) == len(rows)


def test_if_the_last_record_of_a_key_is_unreadable_the_one_before_counts() -> None:
    unreadable = with_header(registration(0), header_names.WAIT_DELIVERY, b"0")
    batch = batch_of([replace(registration(0), offset=0), replace(unreadable, offset=1)])
    rows, quarantined = read(batch.slice(1), EarlierWaits(batch))
    assert (len(rows), [record.offset for record in quarantined]) == (1, [1])


def offsets(earlier: EarlierWaits, key: bytes, offset: int, partition: int = 0) -> list[int]:
    return [record[OFFSET] for record in earlier.before(key, partition, offset)]


@pytest.mark.guarantee("P6.12")
def test_records_of_a_key_in_another_partition_are_no_earlier_ones() -> None:
    earlier = EarlierWaits(batch_of([Row(A, b"", 0, 1), Row(A, None, 1, 2), Row(A, b"", 1, 3), Row(A, b"", 0, 4)]))
    assert offsets(earlier, A, 4) == [1]
    assert offsets(earlier, A, 3, partition=1) == []


def test_earlier_waits_come_newest_first_up_to_a_tombstone() -> None:
    rows = [Row(A, b"", 0, 1), Row(A, None, 0, 2), Row(A, b"", 0, 3), Row(B, b"", 1, 2), Row(A, b"", 0, 5)]
    earlier = EarlierWaits(batch_of([*rows, Row(A, b"", 0, 4), Row(A, b"", 0, 9)]))
    assert offsets(earlier, A, 5) == [4, 3]
    assert offsets(earlier, A, 2) == [1]
    assert offsets(earlier, B, 2) == []
    assert offsets(earlier, C, 2) == []


def test_a_batch_is_scanned_once_and_only_for_keys_with_several_records() -> None:
    lone = [Row(f"lone-{offset}".encode(), b"", 0, offset) for offset in range(100)]
    unkeyed = [Row(None, b"", 0, 200), Row(None, b"", 0, 201)]
    earlier = EarlierWaits(batch_of([*lone, Row(A, b"", 0, 101), Row(A, b"", 0, 102), *unkeyed]))
    scanned = earlier.repeated
    assert scanned[KEY].to_pylist() == [A, A]
    assert [offsets(earlier, row.key or b"", row.offset) for row in lone] == [[]] * len(lone)
    assert offsets(earlier, A, 102) == [101]
    assert earlier.repeated is scanned


names = st.sampled_from(["WAIT_OUTCOME", "other", ""])
header_lists = st.lists(st.tuples(names, st.one_of(st.none(), st.binary(max_size=4))), max_size=5).map(tuple)


def expected(headers: Headers | None) -> str | None:
    value = dict(headers or ()).get("WAIT_OUTCOME")
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


@given(st.lists(st.one_of(st.none(), header_lists), max_size=12), st.integers(0, 5))
def test_the_last_header_of_the_name_counts(all_headers: list[Headers | None], skipped: int) -> None:
    batch = batch_of([Row(b"k", b"v", 0, offset, headers=headers) for offset, headers in enumerate(all_headers)])
    sliced, kept = batch.slice(skipped), all_headers[skipped:]
    [found] = header_values(sliced[HEADERS], "WAIT_OUTCOME")
    assert found.to_pylist() == [expected(headers) for headers in kept]
    assert headers_of(sliced) == [headers or () for headers in kept]


def test_what_is_a_time_does_not_depend_on_the_other_times() -> None:
    odd = ["1970-01-01 00:00:01.500Z", "1970-01-01T01Z", "0000-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000-19:00"]
    beside = ["1970-01-01T00:00:01.500Z", "1970-01-01T00:00:01.5", "1970-02-30T00:00:00.000Z", None]
    for text in odd:
        assert times_ms(pa.array([text])).to_pylist() == [None], text
    for other in beside:
        alone = times_ms(pa.array([other], pa.string())).to_pylist()
        assert times_ms(pa.array([*odd, other])).to_pylist() == [None] * len(odd) + alone


def test_times_of_both_dialects_are_read_and_others_are_null() -> None:
    texts = ["1970-01-01T00:00:01.500Z", "1970-01-01T00:00:01.5", "soon", None, "1970-01-01T01:00:00+01:00"]
    records = [
        Row(b"k", b"v", 0, offset, headers=(("T", text.encode()),) if text else ()) for offset, text in enumerate(texts)
    ]
    [found] = header_values(batch_of(records)[HEADERS], "T")
    assert times_ms(found).to_pylist() == [1500, 1500, None, None, 0]
    assert times_ms(found[:1]).to_pylist() == [1500]


RECORDS = 2_000
VALUE_BYTES = 1_000
ALL = [(("number", str(number).encode()), ("trace", bytes(VALUE_BYTES))) for number in range(RECORDS)]
TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def a_batch() -> pa.Table:
    rows = [[{"key": key, "value": value} for key, value in headers] for headers in ALL]
    return pa.table({HEADERS: pa.chunked_array([pa.array(rows[:700], TYPE), pa.array(rows[700:], TYPE)])})


def test_no_object_is_made_of_the_others() -> None:
    part = a_batch().slice(1_500, 10)
    tracemalloc.start()
    headers_of(part)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < RECORDS * VALUE_BYTES / 10
