"""A commit never passes a record that isn't safe, and the offsets of a partition never contradict one another."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.partition import Partition, PartitionError
from tests.unit.processor.parts import PLACE

# What happens, each with a number from which its argument is drawn.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "read to", "make safe", "request", "confirm", "confirm an old one"]),
        st.integers(0, 1 << 30),
    ),
    max_size=60,
)


class Moving:
    """A partition, and what is known of it by a plain walk over its records."""

    def __init__(self, start: int | None) -> None:
        self.partition = Partition(PLACE, start)
        self.records: list[tuple[int, bool]] = []
        self.requests = [self.partition.requested]

    def take(self, step: str, number: int) -> None:
        partition = self.partition
        if step == "add":
            # Offsets have gaps: compaction and transaction markers.
            offsets = array("q")
            at = max(partition.position, 0)
            for gap in range(number % 4):
                at += gap
                offsets.append(at)
                at += 1
            partition.add(offsets)
            self.records += [(offset, False) for offset in offsets]
        elif step == "read to":
            partition.read_to(number % 8)
        elif step == "make safe" and self.records:
            at = number % len(self.records)
            partition.make_safe(at)
            self.records[at] = (self.records[at][0], True)
        elif step == "request":
            self.requests.append(partition.request())
        elif step == "confirm":
            partition.confirm(self.requests[-1], 1.0)
        elif step == "confirm an old one":
            partition.confirm(self.requests[number % len(self.requests)], 1.0)

    def first_unsafe(self) -> int:
        return next((offset for offset, safe in self.records if not safe), self.partition.position)


@pytest.mark.guarantee("P2.1")
@given(st.none() | st.integers(0, 5), STEPS)
def test_the_offsets_keep_their_order_and_no_commit_passes_a_gap(
    start: int | None, steps: list[tuple[str, int]]
) -> None:
    moving = Moving(start)
    partition = moving.partition
    for step, number in steps:
        moving.take(step, number)
        assert partition.confirmed <= partition.requested <= partition.committable <= partition.position
        assert partition.committable == moving.first_unsafe()
        assert partition.polled == len(moving.records)
        assert partition.uncommitted == sum(offset >= partition.confirmed for offset, _ in moving.records)


@given(STEPS, st.data())
def test_the_last_commit_stops_at_the_first_unstarted_record(steps: list[tuple[str, int]], data: st.DataObject) -> None:
    moving = Moving(0)
    for step, number in steps:
        moving.take(step, number)
    partition = moving.partition
    requested, committable = partition.requested, partition.committable
    later = [offset for offset, _ in moving.records if offset >= requested]
    first = data.draw(st.none() | st.sampled_from(later)) if later else None
    target = partition.last_commit(first)
    assert target == min(committable, committable if first is None else first)
    assert requested <= target == partition.requested


def test_the_broker_can_not_confirm_what_was_not_requested() -> None:
    partition = Partition(PLACE, 3)
    partition.add(array("q", [3, 4]))
    partition.make_safe(0)
    with pytest.raises(PartitionError, match=r"input\[0\]: 4 is confirmed, requested was 3"):
        partition.confirm(4, 0.0)
    assert partition.request() == 4
    partition.confirm(4, 7.0)
    assert (partition.confirmed, partition.confirmed_s) == (4, 7.0)


def test_records_are_polled_once() -> None:
    partition = Partition(PLACE, None)
    partition.add(array("q", [3, 4]))
    with pytest.raises(PartitionError, match="polled offset 4 again, the position is 5"):
        partition.add(array("q", [4]))


@pytest.mark.guarantee("P1.18")
def test_the_warm_up_has_the_first_records_below_the_end_of_the_log() -> None:
    partition = Partition(PLACE, 10, warm_up_records=3, warm_up_end=20)
    places = [(0, 10), (1, 19), (2, 20), (3, 12)]
    assert [partition.in_warm_up(number, offset) for number, offset in places] == [True, True, False, False]
