"""P7: what a look saw counts as Spark divides a batch: each partition by the offsets that it has left."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.batch_limit import BatchLimit
from sink.position import TopicPartition
from sink.sampling import SAMPLE_RECORDS, Sample, Seen, as_a_batch

MIB = 1024 * 1024
AIM = 64 * MIB
A, B, C = (TopicPartition("dlq", partition) for partition in range(3))


def divided(limit: int, behind: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The offsets of a batch: in proportion, rounded down, and one at least (KafkaMicroBatchStream.rateLimit)."""
    left = sum(behind.values())
    shares = {name: limit * count / left for name, count in behind.items()}
    return {name: min(behind[name], math.floor(share) or 1) for name, share in shares.items()}


# What a partition has left, how large each of its records is, and how many of them it has shown.
PARTITIONS = st.tuples(
    st.integers(1, 10**6), st.sampled_from([0, 100, 10_000, 2 * MIB]), st.sampled_from([0, 1, 10, 500, SAMPLE_RECORDS])
)


@given(st.lists(PARTITIONS, min_size=1, max_size=20))
def test_the_first_batch_keeps_to_its_bytes_whatever_the_partitions_hold(log: list[tuple[int, int, int]]) -> None:
    harmless = AIM // (2 * MIB)
    names = [TopicPartition("dlq", number) for number in range(len(log))]
    behind = {name: left for name, (left, _, _) in zip(names, log, strict=True)}
    sizes = {name: size for name, (_, size, _) in zip(names, log, strict=True)}
    seen = {
        name: Seen(min(shown, left), min(shown, left) * size, ended=shown >= left)
        for name, (left, size, shown) in zip(names, log, strict=True)
    }

    sample = as_a_batch(seen, behind, harmless)

    limit = BatchLimit(250_000, AIM).sampled(*sample[:2], whole=sample.whole, harmless=harmless).records
    batch = sum(count * sizes[name] for name, count in divided(limit, behind).items())
    # Half for what was seen and half for what was not; of each partition a record comes in any case.
    assert batch <= 2 * AIM + sum(sizes.values())


def test_a_few_large_records_weigh_as_much_as_their_partition_has_of_them() -> None:
    seen = {A: Seen(1_900, 1_900 * 1_000), B: Seen(4, 4 * MIB)}
    sample = as_a_batch(seen, {A: 5_000, B: 5_000}, harmless=1)
    assert (sample.records, sample.whole) == (1_904, False)
    assert round(sample.nbytes / sample.records) == (1_000 + MIB) / 2


@pytest.mark.guarantee("P7.7")
def test_what_has_shown_nothing_is_harmless_at_first_and_does_not_hold_batches_up() -> None:
    seen, behind = {A: Seen(500, 500 * 1_000), B: Seen(500, 500 * 1_000), C: Seen()}, {A: 10**6, B: 10**6, C: 2 * 10**6}
    sample = as_a_batch(seen, behind, harmless=32)
    limit = BatchLimit(250_000, AIM).sampled(*sample[:2], whole=sample.whole, harmless=32)
    assert limit.records == 64  # of which the half is the third partition's

    running = limit.records
    for _ in range(10):
        # It holds nothing but markers, or what compaction has left of it.
        limit = limit.observed(running // 2, running // 2 * 1_000, running - 3, running)
        if limit.should_restart(running, behind=10**6):
            running = limit.records
    assert running >= AIM / 1_100 / 4


def test_what_has_nothing_left_but_markers_does_not_count() -> None:
    seen = {A: Seen(10, 1_000, ended=True), B: Seen(ended=True)}
    assert as_a_batch(seen, {A: 10, B: 10**6}, harmless=1) == Sample(10, 1_000, whole=True)
    assert as_a_batch({B: Seen(ended=True)}, {B: 10**6}, harmless=1) == Sample(0, 0, whole=True)


def test_a_look_that_saw_nothing_in_time_says_so() -> None:
    assert as_a_batch({A: Seen(), B: Seen(ended=True)}, {A: 10, B: 10}, harmless=1) == Sample(0, 0, whole=False)
