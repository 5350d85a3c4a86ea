"""P2, the pure part: a committed offset never passes a record that isn't safe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.assigned_partition import AssignedPartition
from processor.committable import CommittableOffsets, commit_target
from tests.unit.processor.parts import LONG, batch, entry

# Per batch: which of three partitions each record comes from. Then the order of acknowledgments, by any permutation.
BATCHES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), max_size=8)


@pytest.mark.guarantee("P2.1")
@given(BATCHES, st.randoms(use_true_random=False), st.data())
def test_the_committable_offset_never_passes_a_gap(shape: list[list[int]], random: object, data: st.DataObject) -> None:
    owners = [AssignedPartition("input", number) for number in range(3)]
    next_offset = [0, 0, 0]
    committable = CommittableOffsets()
    consumed = []
    for partitions in shape:
        entries = []
        for partition in partitions:
            # Offsets have gaps: compaction and transaction markers.
            next_offset[partition] += data.draw(st.integers(1, 3))
            entries.append(entry(owners[partition], next_offset[partition]))
        committable.append(batch(*entries))
        consumed.append(entries)
    everything = [one for entries in consumed for one in entries]
    order = data.draw(st.permutations(everything))
    unsafe = set(everything)
    popped = []
    for acknowledged in order:
        assert acknowledged.batch is not None
        acknowledged.batch.acknowledge()
        unsafe.discard(acknowledged)
        popped += committable.advance()
        assert committable.pending() == len(unsafe)
        for owner in owners:
            assert all(one.offset >= owner.committable for one in unsafe if one.owner is owner)
    assert popped == everything, "all are handed on, in the order of consumption"
    for owner in owners:
        offsets = [one.offset for one in everything if one.owner is owner]
        assert owner.committable == (max(offsets) + 1 if offsets else -1)


def test_a_popped_batch_keeps_no_record_alive() -> None:
    owner = AssignedPartition("input", 0)
    committable = CommittableOffsets()
    one = batch(entry(owner, 0))
    committable.append(one)
    one.acknowledge()
    committable.advance()
    assert one.entries == []


OFFSETS = st.integers(-1, 30)


@given(OFFSETS, OFFSETS, st.lists(st.integers(0, 30)))
def test_the_last_commit_equals_a_walk_over_the_offsets(requested: int, committable: int, unstarted: list[int]) -> None:
    walked = requested
    while walked < committable and walked not in set(unstarted):
        walked += 1
    assert commit_target(requested, committable, unstarted) == walked


def test_a_batch_waits_from_its_registration_until_its_last_acknowledgment() -> None:
    owner, committable = AssignedPartition("input", 0, 0), CommittableOffsets()
    assert committable.waiting_s(100.0) == 0
    early, late = (entry(owner, offset, LONG._replace(registered_s=70.0 + offset)) for offset in (0, 10))
    committable.append(batch(early))
    committable.append(batch(late))
    assert committable.waiting_s(100.0) == 30
    assert early.batch is not None
    early.batch.acknowledge()
    committable.advance()
    assert committable.waiting_s(100.0) == 20, "the next batch is the oldest now"
