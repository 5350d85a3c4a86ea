"""Batches stay within their bytes: the limit in records follows the records' size."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.batch_limit import OVERHEAD_BYTES, BatchLimit
from sink.chunks import ChunkSpan
from sink.kafka_query import poll_options
from wait_registry.retry import Backoff

MIB = 1024 * 1024


@pytest.mark.guarantee("P7.7")
@given(st.integers(1, 250_000), st.integers(65_536, 256 * MIB), st.integers(0, 8 * MIB))
def test_a_sampled_batch_stays_within_its_aim_or_has_one_record(records: int, aim: int, size: int) -> None:
    limit = BatchLimit(records, aim).sampled(10, 10 * size, whole=True, harmless=1)
    assert 1 <= limit.records <= records
    assert limit.records == 1 or limit.records * (size + OVERHEAD_BYTES) <= aim


def test_records_that_grow_start_the_query_again_and_a_single_large_one_does_not() -> None:
    limit = BatchLimit(250_000, 64 * MIB).sampled(500, 500 * 500, whole=True, harmless=1)
    running = limit.records
    assert not limit.observed(1000, 1000 * 500 + MIB, 1000, running).should_restart(running, behind=0)
    grown = limit.observed(20_000, 20_000 * 5_000, 20_000, running)
    assert grown.should_restart(running, behind=0)
    assert not grown.should_restart(grown.records, behind=10**9)


def test_a_limit_that_slows_a_catch_up_is_raised_only_while_behind() -> None:
    limit = BatchLimit(250_000, 64 * MIB).sampled(500, 500 * 100_000, whole=True, harmless=1)
    running = limit.records
    small = limit
    for _ in range(20):
        small = small.observed(5_000, 5_000 * 300, 5_000, running)
    assert small.should_restart(running, behind=10**6)
    assert not small.should_restart(running, behind=10)


@pytest.mark.guarantee("P7.7")
def test_behind_what_was_looked_at_batches_grow_from_its_size_on() -> None:
    limit = BatchLimit(250_000, 64 * MIB).sampled(5_000, 5_000 * 500, whole=False, harmless=64)
    assert limit.records == 5_000
    running, sizes = limit.records, [limit.records]
    for _ in range(8):
        # A compacted log: two of three offsets are gone, and the limit is on offsets.
        # Of four partitions each gets a quarter of it, rounded down.
        limit = limit.observed(running // 3, running // 3 * 500, running - 3, running)
        if limit.should_restart(running, behind=10**6):
            running = limit.records
        sizes.append(running)
    assert all(after <= 8 * before for before, after in pairwise(sizes))
    assert running >= 64 * MIB / 600 / 4


@pytest.mark.guarantee("P7.7")
def test_one_large_record_at_the_head_of_a_log_does_not_hold_up_the_small_ones_behind_it() -> None:
    limit = BatchLimit(250_000, 64 * MIB).sampled(1, 64 * MIB, whole=False, harmless=32)
    running, batches = limit.records, 0
    assert running == 1
    while running < 10_000:
        batches += 1
        limit = limit.observed(running, running * 500, running, running)
        if limit.should_restart(running, behind=10**6):
            running = limit.records
        assert batches < 500, f"after {batches} batches still {running} records a batch"


def test_until_the_limit_has_grown_to_its_end_every_batch_is_to_be_written_by_itself() -> None:
    assert BatchLimit(250_000, 64 * MIB).grown
    assert BatchLimit(250_000, 64 * MIB).sampled(100, 100 * 600, whole=True, harmless=64).grown
    limit = BatchLimit(250_000, 64 * MIB).sampled(2_000, 2_000 * 600, whole=False, harmless=64)
    running, ungrown = limit.records, 0
    while not limit.grown:
        limit, ungrown = limit.observed(running, running * 600, running, running), ungrown + 1
        if limit.should_restart(running, behind=10**7):
            running = limit.records
        assert ungrown < 100
    assert ungrown > 5
    assert limit.records >= 64 * MIB / 700
    assert not limit.halved(running).grown


def test_a_further_look_lowers_what_was_learnt_and_never_raises_it() -> None:
    limit = BatchLimit(250_000, 64 * MIB).halved(1000)
    assert limit.sampled(2_000, 2_000 * 100, whole=False, harmless=64).records == 500
    assert limit.sampled(100, 100 * 100, whole=False, harmless=64).records == 100


def test_behind_a_look_that_saw_nothing_only_what_is_harmless_of_any_size_is_asked_for() -> None:
    assert BatchLimit(250_000, 64 * MIB).sampled(0, 0, whole=False, harmless=64).records == 64
    assert BatchLimit(250_000, 64 * MIB).sampled(0, 0, whole=False, harmless=0).records == 1


@pytest.mark.guarantee("P7.7")
@given(st.integers(1, 250_000), st.integers(1, 200))
def test_what_consumers_hold_besides_a_batch_is_about_half_of_one_at_most(max_records: int, partitions: int) -> None:
    polled = int(poll_options(max_records, partitions)["kafka.max.poll.records"])
    assert polled == 1 or (polled <= 500 and polled * partitions <= max_records / 2)


def test_a_batch_too_large_halves_the_limit_until_batches_are_small_again() -> None:
    limit = BatchLimit(1000, 64 * MIB).halved(1000).halved(500)
    assert limit.records == 250
    assert limit.observed(250, 1000, 250, 250).records == 500
    assert limit.observed(10, 1000, 10, 250).records == 250
    assert limit.observed(250, 1000, 250, 250).observed(500, 1000, 500, 500).records == 1000
    assert BatchLimit(1000, 64 * MIB).halved(1).records == 1


@given(st.lists(st.integers(0, 2000), max_size=30))
def test_chunks_of_a_log_with_gaps_grow_by_a_bounded_factor(found: list[int]) -> None:
    chunk = ChunkSpan.of(1000)
    for count in found:
        after = chunk.after(count)
        assert 1 <= after.span <= 8 * chunk.span
        chunk = after
    assert ChunkSpan(1000, 4000).after(1000).span == 4000
    assert ChunkSpan(1000, 1).halved() is None


def test_pauses_double_up_to_their_bound_and_begin_anew_after_success() -> None:
    backoff = Backoff(1.0, 5.0, random=lambda: 1.0)
    assert [backoff.next_s() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    backoff.reset()
    assert backoff.next_s() == 1.0
    assert Backoff(1.0, 5.0, random=lambda: 0.0).next_s() == 0.5
