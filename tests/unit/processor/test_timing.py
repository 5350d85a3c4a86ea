"""Expiry, retries and clocks: the rules about time."""

from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from hypothesis import given
from hypothesis import strategies as st

from processor.calls.retry_decision import RetryDecision, time_limits
from processor.fault import Fault
from processor.health.clock_watch import ClockWatch, clock_skew_ms
from processor.health.stats import Stats
from tests.unit.processor.parts import CLOCK, HaltedClock
from wait_registry.errors import TransientError
from wait_registry.settings.processor import ProcessorSettings, RetrySettings


@given(
    st.floats(0.1, 60),
    st.integers(1, 10),
    st.floats(0, 5),
    st.floats(0, 20),
    st.floats(0.1, 30),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=10, max_size=10),
)
def test_a_handler_started_in_time_ends_before_the_margin(
    timeout_s: float, tries: int, first_s: float, longest_s: float, margin_s: float, jitter: list[float]
) -> None:
    attempts = {"handler_timeout_s": timeout_s, "max_attempts": tries, "margin_s": margin_s, "ttl_s": 1000}
    pauses = {"backoff_initial_s": first_s, "backoff_max_s": longest_s}
    settings = ProcessorSettings.model_validate({**attempts, **pauses})
    limits = time_limits(settings)
    decision = RetryDecision(settings, limits, iter([*jitter, *jitter]).__next__)
    expires_s = 1000.0
    now_s = expires_s - limits.start_needs_s
    for tried in range(1, tries + 1):
        now_s += timeout_s  # every attempt takes its whole limit
        pause_s = decision.pause_s(TimeoutError(), tried, now_s, expires_s)
        assert (pause_s is None) == (tried == tries), "there is time for every attempt"
        now_s += pause_s or 0
    assert now_s <= expires_s - margin_s + 1e-6


def test_no_attempt_begins_that_could_not_end_before_the_margin() -> None:
    settings = ProcessorSettings(handler_timeout_s=10, max_attempts=3, margin_s=5, ttl_s=100, backoff_initial_s=4)
    decision = RetryDecision(settings, time_limits(settings), lambda: 0.5)
    assert decision.pause_s(TimeoutError(), 1, 83.0, 100.0) == 2.0
    assert decision.pause_s(TimeoutError(), 1, 83.1, 100.0) is None
    assert decision.still_in_time(85.0, 100.0)
    assert not decision.still_in_time(85.1, 100.0)


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_pauses_grow_twofold_up_to_the_longest_with_full_jitter(tries: int, jitter: float) -> None:
    settings = ProcessorSettings(
        max_attempts=100, backoff_initial_s=0.5, backoff_max_s=8, handler_timeout_s=1, ttl_s=1e6
    )
    decision = RetryDecision(settings, time_limits(settings), lambda: jitter)
    pause_s = decision.pause_s(TransientError(), tries, 0.0, 1e6)
    assert pause_s == pytest.approx(jitter * min(8, 0.5 * 2 ** (tries - 1)))


def test_a_pause_that_the_service_asks_for_is_kept_within_the_longest() -> None:
    settings = ProcessorSettings(max_attempts=5, backoff_initial_s=0.1, backoff_max_s=8)
    decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
    assert decision.pause_s(TransientError("busy", retry_after_s=3), 1, 0.0, 600.0) == 3
    assert decision.pause_s(TransientError("busy", retry_after_s=3600), 1, 0.0, 600.0) == 8


def test_a_longer_pause_is_left_to_the_retry_topics() -> None:
    settings = ProcessorSettings(max_attempts=5, backoff_max_s=8, retry=RetrySettings(delays=("1m",)))
    decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
    assert decision.pause_s(TransientError("busy", retry_after_s=8), 1, 0.0, 600.0) == 8
    assert decision.pause_s(TransientError("busy", retry_after_s=9), 1, 0.0, 600.0) is None


def test_the_longest_pauses_are_those_of_the_settings() -> None:
    assert ProcessorSettings(max_attempts=5, backoff_initial_s=1, backoff_max_s=3).longest_backoffs_s == 1 + 2 + 3 + 3
    assert ProcessorSettings(max_attempts=1).longest_backoffs_s == 0


@given(st.integers(-10_000, 10_000), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_what_a_round_trip_explains_is_no_difference(skew_ms: int, sent_ms: int, there_ms: int, back_ms: int) -> None:
    # The broker stamps after `there_ms`, on a clock that is `skew_ms` ahead.
    seen = clock_skew_ms(sent_ms + there_ms + skew_ms, sent_ms, sent_ms + there_ms + back_ms)
    assert abs(seen) <= abs(skew_ms)
    assert seen * skew_ms >= 0
    assert abs(skew_ms - seen) <= there_ms + back_ms


@pytest.mark.guarantee("P3.17")
@pytest.mark.parametrize(
    ("skew_ms", "warns", "stops"),
    [
        (0, False, False),
        (2499, False, False),
        (2500, True, False),
        (-2500, True, False),
        (4999, True, False),
        (5000, False, True),
        (-60_000, False, True),
    ],
)
def test_a_quarter_of_the_margin_warns_and_half_of_it_stops(
    skew_ms: int, warns: bool, stops: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fault, clock = Fault(), HaltedClock()
    clock.now_ms = lambda: 1_000_000  # type: ignore[method-assign]
    watch = ClockWatch(10.0, clock, fault, Stats())
    watch.observe((TIMESTAMP_LOG_APPEND_TIME, 1_000_000 + skew_ms), sent_ms=1_000_000)
    assert ("the process stops at half of it" in caplog.text, fault.error is not None) == (warns, stops)


@pytest.mark.parametrize(
    ("kind", "ahead_ms", "warned"),
    [
        (TIMESTAMP_LOG_APPEND_TIME, 600_000, True),
        (TIMESTAMP_LOG_APPEND_TIME, 2_000, False),
        (TIMESTAMP_LOG_APPEND_TIME, -600_000, False),
        (TIMESTAMP_CREATE_TIME, 600_000, False),
    ],
)
def test_records_from_ahead_only_warn(kind: int, ahead_ms: int, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    fault = Fault()
    watch = ClockWatch(10.0, CLOCK, fault, Stats())
    watch.observe_polled((kind, CLOCK.now_ms() + ahead_ms))
    assert ("Synchronize the clocks" in caplog.text) is warned
    assert fault.error is None
