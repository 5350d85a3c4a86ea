"""P1, P8: wait records become rows or go to quarantine, however the batch is cut, and nothing raises."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.apply.earlier_waits import EarlierWaits
from sink.apply.wait_rows import wait_rows
from tests.unit.records.strategies import HEADER_VALUES, INT64
from tests.unit.sink.batches import Row, batch_of
from tests.unit.sink.registrations import in_chunks, quarantined_in_order, registration, rows_in_order, with_header
from wait_registry.records import names

SYSTEM_NAMES = st.sampled_from([name for name, _ in registration(0).headers or ()])
TEXTS = INT64.map(str) | st.sampled_from(
    ["007", "-0", "9" * 20, "", "2026-02-29T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "[]", '[["a"]]', "null", "a\0b"]
)
VALUES = st.one_of(TEXTS.map(str.encode), HEADER_VALUES, st.sampled_from([b"\xff", b"\xed\xa0\x80"]))
changed = st.builds(with_header, st.integers(0, 50).map(registration), SYSTEM_NAMES, VALUES)
odd = st.builds(replace, changed, headers=st.none()) | st.builds(replace, changed, value=st.sampled_from([b"", b"x"]))


@pytest.mark.guarantee("P1.17")
@given(st.lists(changed | odd, max_size=12), st.lists(st.integers(0, 4), max_size=4), st.integers(1, 12))
def test_every_record_is_a_row_or_quarantined_however_batches_are_cut(
    rows: list[Row], lengths: list[int], at_once: int
) -> None:
    rows = [replace(row, offset=offset) for offset, row in enumerate(rows)]
    batch, nothing_before = batch_of(rows), lambda key, partition, offset: ()
    found = wait_rows("wait", in_chunks(batch, lengths), nothing_before, at_once)
    whole = wait_rows("wait", batch, nothing_before)
    assert rows_in_order(found) == rows_in_order(whole)
    assert quarantined_in_order(found) == quarantined_in_order(whole)
    assert found.count + len(found.unreadable) == len(rows)


def test_if_the_last_record_of_a_key_is_unreadable_the_one_before_counts() -> None:
    unreadable = with_header(registration(0), names.WAIT_DELIVERY, b"0")
    batch = batch_of([replace(registration(0), offset=0), replace(unreadable, offset=1)])
    found = wait_rows("wait", batch.slice(1), EarlierWaits(batch).before)
    assert (found.count, [record.offset for record in found.unreadable]) == (1, [1])
