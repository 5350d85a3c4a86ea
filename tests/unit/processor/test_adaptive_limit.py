"""With `auto`, the limit of calls follows what the called service can take, and learns nothing from an outage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.limits.__main__ import measure
from bench.limits.called_service import Phase, Service, Trial
from processor.dispatch.adaptive_limit import FIRST_LIMIT, AdaptiveLimit
from processor.dispatch.concurrency import EndedCall

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
