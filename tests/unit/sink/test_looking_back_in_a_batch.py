"""Where the last record of a key can't be read, what came before it in the batch is found without another scan."""

from __future__ import annotations

import pytest

from sink.apply.earlier_waits import EarlierWaits
from sink.read.batch import KEY, OFFSET
from tests.unit.sink.batches import Row, batch_of

A, B, C = b"a", b"b", b"c"


def offsets(earlier: EarlierWaits, key: bytes, offset: int, partition: int = 0) -> list[int]:
    return [record[OFFSET] for record in earlier.before(key, partition, offset)]


@pytest.mark.guarantee("P6.12")
def test_what_another_partition_has_of_a_key_came_neither_before_nor_behind_it() -> None:
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


def test_only_keys_with_several_records_are_looked_through_and_the_batch_is_scanned_once() -> None:
    lone = [Row(f"lone-{offset}".encode(), b"", 0, offset) for offset in range(100)]
    unkeyed = [Row(None, b"", 0, 200), Row(None, b"", 0, 201)]
    earlier = EarlierWaits(batch_of([*lone, Row(A, b"", 0, 101), Row(A, b"", 0, 102), *unkeyed]))
    scanned = earlier.repeated
    assert scanned[KEY].to_pylist() == [A, A]
    for row in lone:
        assert offsets(earlier, row.key or b"", row.offset) == []
    assert offsets(earlier, A, 102) == [101]
    assert earlier.repeated is scanned
