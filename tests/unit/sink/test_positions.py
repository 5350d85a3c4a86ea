"""Positions and plans: a position's time is a lower bound on what follows, a plan stays within log and limit."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.position import (
    LogEnds,
    Position,
    PositionExpired,
    TopicPartition,
    advanced,
    moment,
    refreshed,
    require_fresh,
    require_read_in_time,
    whole_from,
)
from sink.read.range_plan import GROWTH, OVERHEAD_BYTES, Range, ReadLimit, offsets_of, plan, poll_records

P0, P1 = TopicPartition("wait", 0), TopicPartition("wait", 1)
HOUR_MS = 3_600_000
NOW = moment(1_000 * HOUR_MS)


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def ms(hours_ago: float) -> int:
    return int(ago(hours_ago).timestamp() * 1000)


@pytest.mark.guarantee("P6.10")
@pytest.mark.parametrize(
    ("reached", "last_ms", "time"),
    [
        pytest.param(10, None, NOW, id="at the log's end: when it was read"),
        pytest.param(9, ms(3), ago(3), id="before the end: that of the last record"),
        pytest.param(7, ms(-24), NOW, id="a foreign time in the future"),
        pytest.param(7, None, ago(9), id="markers alone"),
        pytest.param(7, ms(20), ago(9), id="a clock that stepped back"),
        # No calendar has these; a foreign producer wrote microseconds as milliseconds, say.
        *(
            (7, time_ms, ago(9))
            for time_ms in (1_700_000_000_000_000, 253_402_300_800_000, -(10**15), 2**63 - 1, -(2**63))
        ),
    ],
)
def test_a_position_takes_the_time_of_what_it_has_reached(reached: int, last_ms: int | None, time: datetime) -> None:
    assert advanced(Position(5, ago(9)), reached, last_ms, end=10, listed_at=NOW) == Position(reached, time)


@pytest.mark.guarantee("P3.11")
@given(st.lists(st.tuples(st.integers(0, 500), st.booleans()), min_size=1, max_size=30), st.data())
def test_the_time_is_never_after_the_append_of_what_follows(log: list[tuple[int, bool]], data: st.DataObject) -> None:
    """A log of records and markers; batches end anywhere; read at some time after the last append."""
    times: list[int] = []
    for gap, _ in log:
        times.append((times[-1] if times else 0) + gap)
    read_ms = times[-1] + 1
    position = Position(0, moment(0))
    while position.next_offset < len(log):
        until = data.draw(st.integers(position.next_offset + 1, len(log)))
        records = [times[o] for o in range(position.next_offset, until) if not log[o][1]]
        position = advanced(position, until, records[-1] if records else None, len(log), moment(read_ms))
        if until < len(log):
            assert position.position_time <= moment(times[until])


def test_idle_positions_at_the_end_are_refreshed_and_others_are_left() -> None:
    ends = LogEnds({P0: 5, P1: 7}, NOW)
    positions = {P0: Position(5, ago(1)), P1: Position(6, ago(1))}
    assert refreshed(positions, ends) == {P0: Position(5, NOW), P1: Position(6, ago(1))}


def test_a_position_before_the_end_older_than_half_of_retention_is_refused() -> None:
    retention_ms = 72 * HOUR_MS
    ends = LogEnds({P0: 5, P1: 7}, NOW)
    require_fresh({P0: Position(5, ago(1000)), P1: Position(6, ago(36))}, ends, retention_ms)
    with pytest.raises(PositionExpired, match=r"wait-1 .*`waitreg rebuild`"):
        require_fresh({P0: Position(5, NOW), P1: Position(6, ago(36.01))}, ends, retention_ms)


def test_a_rebuild_that_took_longer_than_half_of_retention_is_refused() -> None:
    require_read_in_time(P0, ago(36), NOW, 72 * HOUR_MS)
    with pytest.raises(PositionExpired, match=r"the rebuild has taken 36\.1 h for wait-0"):
        require_read_in_time(P0, ago(36.1), NOW, 72 * HOUR_MS)


def test_only_what_was_read_in_time_shows_that_an_id_was_resolved_before() -> None:
    ends = LogEnds({P0: 50, P1: 70}, NOW)
    positions = {P0: Position(5, ago(0.9 / 60)), P1: Position(6, ago(1.1 / 60))}
    assert whole_from(positions, frozenset(), ends, {}) == {P0: 5, P1: 70}
    assert whole_from(positions, frozenset({P0}), ends, {}) == {P0: 50, P1: 70}


def test_a_start_in_an_old_stretch_that_was_begun_before_stays_in_it() -> None:
    first = whole_from({P0: Position(0, NOW), P1: Position(6, ago(8))}, {P0}, LogEnds({P0: 50, P1: 70}, NOW), {})
    assert first == {P0: 50, P1: 70}
    again = whole_from({P0: Position(20, NOW), P1: Position(80, NOW)}, (), LogEnds({P0: 60, P1: 90}, NOW), first)
    assert again == {P0: 50, P1: 80}
    long_after = {P0: Position(30, ago(8)), P1: Position(80, NOW)}
    assert whole_from(long_after, (), LogEnds({P0: 95, P1: 90}, NOW), again) == {P0: 95, P1: 80}


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
