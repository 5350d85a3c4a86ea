"""One header of many records is what a record-by-record reading finds."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sink.apply.header_values import header_values, times_ms
from sink.read.batch import HEADERS, headers_of
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


def test_what_is_a_time_does_not_depend_on_the_times_beside_it() -> None:
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
