"""What is planned is within the log, within the limit, and comes to the end; the limit follows what was read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.position import TopicPartition
from sink.read.ranges import (
    GROWTH,
    OVERHEAD_BYTES,
    Range,
    ReadLimit,
    offsets_of,
    plan,
    poll_records,
)

MIB = 1024 * 1024
PLACES = [TopicPartition("wait", number) for number in range(5)]
logs = st.lists(st.tuples(st.integers(0, 50), st.integers(-3, 80)), min_size=1, max_size=len(PLACES))


@given(logs, st.integers(1, 200))
def test_plans_read_every_offset_once_and_within_the_limit(log: list[tuple[int, int]], limit: int) -> None:
    positions = {name: begin for name, (begin, _) in zip(PLACES, log, strict=False)}
    ends = {name: begin + left for name, (begin, left) in zip(PLACES, log, strict=False)}
    at = dict(positions)
    while ranges := plan(at, ends, limit):
        assert offsets_of(ranges) < limit + len(ranges)
        assert len(ranges) <= limit
        for name, each in ranges.items():
            assert at[name] == each.begin < each.end <= ends[name]
            at[name] = each.end
    assert at == {name: max(positions[name], end) for name, end in ends.items()}


def test_a_partition_has_the_share_that_it_has_of_what_is_left() -> None:
    ranges = plan(dict.fromkeys(PLACES[:3], 0), dict(zip(PLACES, (1_000, 3_000, 0), strict=False)), 400)
    assert ranges == {PLACES[0]: Range(0, 100), PLACES[1]: Range(0, 300)}


def test_a_partition_without_a_known_end_is_skipped() -> None:
    assert plan({PLACES[0]: 3}, {}, 10) == {}


@pytest.mark.guarantee("P7.7")
@given(st.integers(1, 10**6), st.integers(65_536, 256 * MIB), st.integers(1, 64 * MIB))
def test_the_first_ranges_fit_whatever_their_records_size(records: int, nbytes: int, largest: int) -> None:
    limit = ReadLimit.careful(records, nbytes, largest)
    assert 1 <= limit.offsets <= records
    assert limit.offsets == 1 or limit.offsets * largest <= nbytes


@pytest.mark.parametrize(
    ("offsets", "held", "nbytes", "expected"),
    [
        (100, 100, 100 * (1024 - OVERHEAD_BYTES), 400),  # full, of small records: four times as many
        (100, 0, 0, 400),  # full, but compacted away
        (99, 99, 99 * 100, 100),  # the log's end was nearer: it says nothing about larger ranges
        (100, 100, 10 * MIB, 10),  # larger than they were: as many as fit
        (2, 2, 2 * MIB, 1),
        (1, 1, 8 * MIB, 1),
    ],
)
def test_the_limit_follows_what_ranges_held(offsets: int, held: int, nbytes: int, expected: int) -> None:
    assert ReadLimit(250_000, MIB, 100).after(offsets, held, nbytes).offsets == pytest.approx(expected, rel=0.1)


@given(st.integers(1, 10**5), st.integers(0, 10**5), st.integers(0, 10**9))
def test_the_limit_never_grows_beyond_its_bounds(offsets: int, held: int, nbytes: int) -> None:
    before = ReadLimit(50_000, MIB, 1_000)
    after = before.after(offsets, min(held, offsets), nbytes)
    assert 1 <= after.offsets <= min(before.max_records, GROWTH * before.offsets)


def test_what_was_too_large_is_halved_down_to_one_offset() -> None:
    limit, seen = ReadLimit(250_000, MIB, 1_000), []
    while (smaller := limit.halved(min(limit.offsets, 7))) is not None:
        limit = smaller
        seen.append(limit.offsets)
    assert seen == [3, 1]


@pytest.mark.parametrize(
    ("offsets", "partitions", "expected"), [(1, 1, 1), (60, 3, 10), (32_000, 4, 500), (2_000, 4, 100), (7, 4, 1)]
)
def test_a_consumer_holds_no_more_than_half_of_its_range(offsets: int, partitions: int, expected: int) -> None:
    ranges = plan(dict.fromkeys(PLACES[:partitions], 0), dict.fromkeys(PLACES[:partitions], offsets), offsets)
    assert poll_records(ranges) == expected
