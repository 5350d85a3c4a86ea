"""A few records of a large batch have their own headers, and cost what theirs take."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest

from sink.read.batch import HEADERS, headers_of

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
