"""Records and bytes in the prefetch are bounded by what is finished, and polling pauses at the limit (P7)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.dispatch.concurrency import FixedLimit
from processor.dispatch.prefetch import Prefetch

MANY = 1 << 40


def test_at_first_the_limit_is_little_more_than_twice_the_slots() -> None:
    assert Prefetch(FixedLimit(10), 20_000, MANY).bound(True) == 36
    assert Prefetch(FixedLimit(2000), 20_000, MANY).bound(True) == 4016


@given(
    st.integers(1, 3000),
    st.integers(1, 30_000),
    st.lists(st.tuples(st.floats(0.01, 2), st.integers(0, 50_000)), max_size=20),
)
def test_the_bound_is_n_and_a_share_of_the_rate_measured_last(n: int, cap: int, steps: list[tuple[float, int]]) -> None:
    prefetch = Prefetch(FixedLimit(n), cap, MANY)
    now, finished, since, at_since, rate = 0.0, 0, 0.0, 0, 0.0
    prefetch.observe(now, finished)
    for elapsed, completed in steps:
        now, finished = now + elapsed, finished + completed
        prefetch.observe(now, finished)
        if now - since >= 0.5:
            rate, since, at_since = (finished - at_since) / (now - since), now, finished
        assert prefetch.bound(True) == min(cap, n + max(n + 16, math.ceil(0.2 * rate)))
        assert prefetch.bound(False) == min(cap, n + max(4, math.ceil(0.02 * rate)))


@pytest.mark.guarantee("P7.1")
@given(st.integers(0, 5000), st.integers(0, 2000), st.integers(1, 100), st.integers(0, 10_000), st.booleans())
def test_the_capacity_never_exceeds_a_limit(
    outstanding: int, size: int, records: int, seen: int, calls_wait: bool
) -> None:
    prefetch = Prefetch(FixedLimit(10), 1000, 1500)
    prefetch.observe_size(records, seen)
    capacity = prefetch.capacity(outstanding, size, calls_wait)
    assert capacity >= 0
    assert capacity == 0 or outstanding + capacity <= prefetch.bound(calls_wait)
    assert capacity == 0 or size < 1500


@pytest.mark.guarantee("P7.1")
def test_large_records_are_limited_by_their_bytes() -> None:
    prefetch = Prefetch(FixedLimit(100), 1000, 10_000)
    for _ in range(50):
        prefetch.observe_size(10, 10_000)
    assert 1 <= prefetch.capacity(0, 0, True) <= 11
    assert prefetch.capacity(10, 10_000, True) == 0
