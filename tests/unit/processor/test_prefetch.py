"""Records and bytes in the prefetch are bounded by what is finished, and polling pauses at the limit (P7)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.prefetch import PAUSE_AT, Pausing, Prefetch
from tests.unit.processor.pipeline_bench import PipelineBench

MANY = 1 << 40


def test_at_first_the_limit_is_little_more_than_twice_the_slots() -> None:
    assert Prefetch(10, 20_000, MANY).bound == 36
    assert Prefetch(2000, 20_000, MANY).bound == 4016


@given(
    st.integers(1, 3000),
    st.integers(1, 30_000),
    st.lists(st.tuples(st.floats(0.01, 2), st.integers(0, 50_000)), max_size=20),
)
def test_the_bound_is_n_and_a_share_of_the_rate_measured_last(n: int, cap: int, steps: list[tuple[float, int]]) -> None:
    prefetch = Prefetch(n, cap, MANY)
    now, finished, since, at_since, rate = 0.0, 0, 0.0, 0, 0.0
    prefetch.observe(now, finished)
    for elapsed, completed in steps:
        now, finished = now + elapsed, finished + completed
        prefetch.observe(now, finished)
        if now - since >= 0.5:
            rate, since, at_since = (finished - at_since) / (now - since), now, finished
        assert prefetch.bound == min(cap, n + max(n + 16, math.ceil(0.2 * rate)))


@pytest.mark.guarantee("P7.1")
@given(st.integers(0, 5000), st.integers(0, 2000), st.integers(1, 100), st.integers(0, 10_000))
def test_the_capacity_never_exceeds_a_limit(outstanding: int, size: int, records: int, seen: int) -> None:
    prefetch = Prefetch(10, 1000, 1500)
    prefetch.observe_size(records, seen)
    capacity = prefetch.capacity(outstanding, size)
    assert capacity >= 0
    assert capacity == 0 or outstanding + capacity <= prefetch.bound
    assert capacity == 0 or size < 1500


@pytest.mark.guarantee("P7.1")
def test_large_records_are_limited_by_their_bytes() -> None:
    prefetch = Prefetch(100, 1000, 10_000)
    for _ in range(50):
        prefetch.observe_size(10, 10_000)
    assert 1 <= prefetch.capacity(0, 0) <= 11
    assert prefetch.capacity(10, 10_000) == 0


def test_a_member_without_capacity_polls_twice_per_second() -> None:
    pausing = Pausing()
    assert pausing.poll_due(0.0)
    pausing.polled(0.0)
    assert not pausing.poll_due(0.4)
    assert pausing.poll_due(0.5)


def test_polling_pauses_after_several_buffered_records() -> None:
    pausing = Pausing()
    assert not pausing.pause_due(PAUSE_AT - 1)
    assert pausing.pause_due(PAUSE_AT)
    pausing.paused = True
    assert not pausing.pause_due(PAUSE_AT + 1), "it is paused already"


def test_polling_resumes_at_a_quarter_of_the_whole_capacity() -> None:
    pausing = Pausing()
    assert not pausing.resume_due(36, 36), "it isn't paused"
    pausing.paused = True
    assert not pausing.resume_due(8, 36)
    assert pausing.resume_due(9, 36)


@pytest.mark.guarantee("P7.5")
async def test_polling_resumes_if_no_record_is_unfinished() -> None:
    poll_loop = PipelineBench().poll_loop

    @given(
        st.integers(1, 3000),
        st.integers(1, 30_000),
        st.integers(1, 1 << 28),
        st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 1 << 30)), max_size=10),
    )
    def resumes(n: int, max_records: int, max_bytes: int, fetches: list[tuple[int, int]]) -> None:
        poll_loop.prefetch = Prefetch(n, max_records, max_bytes)
        for records, size in fetches:
            poll_loop.prefetch.observe_size(records, size)
        poll_loop.pausing.paused = True
        poll_loop.consume(0.0)
        assert not poll_loop.pausing.paused, f"a bound of {poll_loop.prefetch.bound}"

    resumes()
