"""Headers of many records at once are what reading record by record finds, and cost what theirs take."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.apply.header_values import header_values, times_ms
from sink.read.record_columns import HEADERS, headers_of
from tests.unit.sink.batches import Headers, Row, batch_of

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
    assert header_values(sliced[HEADERS], "WAIT_OUTCOME").to_pylist() == [expected(headers) for headers in kept]
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
    found = times_ms(header_values(batch_of(records)[HEADERS], "T"))
    assert found.to_pylist() == [1500, 1500, None, None, 0]
    assert times_ms(header_values(batch_of(records[:1])[HEADERS], "T")).to_pylist() == [1500]


RECORDS = 2_000
VALUE_BYTES = 1_000
ALL = [(("number", str(number).encode()), ("trace", bytes(VALUE_BYTES))) for number in range(RECORDS)]
TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def a_batch() -> pa.Table:
    rows = [[{"key": key, "value": value} for key, value in headers] for headers in ALL]
    return pa.table({HEADERS: pa.chunked_array([pa.array(rows[:700], TYPE), pa.array(rows[700:], TYPE)])})


@pytest.mark.parametrize(("first", "count"), [(0, RECORDS), (0, 10), (690, 20), (1_500, 10), (1_999, 1), (5, 0)])
def test_they_are_its_own(first: int, count: int) -> None:
    assert headers_of(a_batch().slice(first, count)) == ALL[first : first + count]


def test_no_object_is_made_of_the_others() -> None:
    part = a_batch().slice(1_500, 10)
    tracemalloc.start()
    headers_of(part)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < RECORDS * VALUE_BYTES / 10
