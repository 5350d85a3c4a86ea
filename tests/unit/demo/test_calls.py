"""Calls of the downstream: which are work done, and what the summary of their latencies says."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.demo.calls import ABORTED, Call, LatencySummary


@pytest.mark.parametrize(
    ("status", "succeeded"), [(200, True), (204, True), (302, False), (ABORTED, False), (503, False)]
)
def test_only_a_2xx_answer_is_work_done(status: int, succeeded: bool) -> None:
    call = Call(1, 1000, 1200, 5.0, 5.25, "id", "orders", 0, 7, 1, status, "ab")
    assert call.succeeded is succeeded
    assert call.latency_s == 0.25


@given(st.lists(st.floats(0.0001, 100), min_size=1, max_size=200), st.sampled_from([1, 50, 90, 99, 100]))
def test_percentiles_are_right_to_one_percent(latencies: list[float], percent: int) -> None:
    summary = LatencySummary()
    for latency in latencies:
        summary.add(latency)
    exact = sorted(latencies)[ceil(len(latencies) * percent / 100) - 1]
    assert exact * 0.999 <= summary.percentile_s(percent) <= exact * 1.011
    assert summary.slowest_s == max(latencies)
    assert summary.mean_s == pytest.approx(sum(latencies) / len(latencies))


def test_an_empty_summary_is_all_zero() -> None:
    summary = LatencySummary()
    assert (summary.count, summary.mean_s, summary.slowest_s, summary.percentile_s(99)) == (0, 0, 0, 0)
