"""Bounds: of records and bytes in the prefetch, and with `auto` of the calls in flight (P7)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.limits.__main__ import measure
from bench.limits.called_service import Phase, Service, Trial
from processor.flow.adaptive_limit import FIRST_LIMIT, AdaptiveLimit
from processor.flow.concurrency import EndedCall, FixedLimit
from processor.flow.prefetch import Prefetch

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
def test_no_capacity_exceeds_a_limit(outstanding: int, size: int, records: int, seen: int, calls_wait: bool) -> None:
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


LEAST, MOST = 5, 500


@pytest.mark.parametrize("service", [Service(), Service(refuses=True)], ids=["queues", "refuses"])
def test_the_limit_follows_the_capacity(service: Service) -> None:
    phases = [Phase(30, 20), Phase(30, 200), Phase(60, 5), Phase(30, 20)]
    for phase, numbers in zip(phases, measure(Trial(AdaptiveLimit(LEAST, MOST), phases, service).run()), strict=True):
        assert numbers.later_share > 0.75, phase
        assert numbers.overload < 3, phase
        assert numbers.slower < 2, phase


def test_calls_that_hang_do_not_lower_the_limit() -> None:
    (numbers,) = measure(Trial(AdaptiveLimit(LEAST, MOST), [Phase(60, 50)], Service(hangs=0.01)).run())
    # Hanging attempts hold two thirds of the slots, so 50 slots would give a third of the rate.
    assert numbers.limit > 60
    assert numbers.later_share > 0.5


def test_failures_that_no_load_explains_are_normal_after_a_while() -> None:
    (numbers,) = measure(Trial(AdaptiveLimit(LEAST, MOST), [Phase(90, 100)], Service(fails=0.7)).run())
    # A third of the calls fails: three attempts at each.
    assert numbers.limit > 60


def test_a_service_that_becomes_slower_is_not_taken_for_a_full_one() -> None:
    phases = [Phase(30, 100), Phase(90, 100, slower=5)]
    _, slow = measure(Trial(AdaptiveLimit(LEAST, MOST), phases, Service()).run())
    assert slow.later_share > 0.6


def test_an_outage_does_not_send_the_limit_to_its_lower_bound() -> None:
    before, away, after = measure(
        Trial(AdaptiveLimit(LEAST, MOST), [Phase(30, 100), Phase(40, 0), Phase(30, 100)], Service()).run()
    )
    assert away.limit > before.limit / 10
    assert after.later_share > 0.9
    assert after.recovered_s < 15


def learn(limit: AdaptiveLimit, calls: int, running: int, seconds: float = 0.1, failed: bool = False) -> None:
    limit.learn([EndedCall(seconds, running, failed)] * calls, running - calls, 1.0)


def test_few_calls_in_flight_never_raise_the_limit() -> None:
    limit = AdaptiveLimit(LEAST, MOST)
    for _ in range(20):
        learn(limit, 100, FIRST_LIMIT // 2 - 1)
    assert limit.current == FIRST_LIMIT


def test_quick_calls_raise_the_limit_to_its_upper_bound() -> None:
    limit = AdaptiveLimit(LEAST, 100)
    for _ in range(30):
        learn(limit, 100, limit.current)
    assert limit.current == 100


def test_nothing_but_failures_changes_nothing() -> None:
    limit = AdaptiveLimit(LEAST, MOST)
    for _ in range(5):
        learn(limit, 100, limit.current)
    was = limit.current
    for _ in range(50):
        learn(limit, 100, limit.current, failed=True)
    assert limit.current == was


@given(
    st.integers(1, 50),
    st.integers(0, 200),
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300), st.floats(0, 60), st.booleans()), max_size=60),
)
def test_the_limit_stays_within_its_bounds(least: int, more: int, windows: list[tuple[int, int, float, bool]]) -> None:
    limit = AdaptiveLimit(least, least + more)
    for now_s, (calls, running, seconds, failed) in enumerate(windows):
        limit.learn([EndedCall(seconds, running, failed)] * calls, running, float(10 * now_s))
        assert least <= limit.current <= least + more
