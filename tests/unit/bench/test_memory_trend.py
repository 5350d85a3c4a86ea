"""Whether memory stays what it is."""

from __future__ import annotations

import pytest

from bench.contenders.memory_trend import memory_trend


def test_a_growing_process_has_a_slope() -> None:
    trend = memory_trend([(float(second), 1000.0 + 3 * second) for second in range(100)])
    assert trend["rss_bytes_per_s"] == pytest.approx(3)
    assert trend["rss_first_bytes"] == pytest.approx(1013.5)
    assert trend["rss_last_bytes"] == pytest.approx(1283.5)


def test_a_flat_one_has_none() -> None:
    trend = memory_trend([(float(second), 5.0) for second in range(10)])
    assert trend == {"rss_first_bytes": 5, "rss_last_bytes": 5, "rss_bytes_per_s": pytest.approx(0)}


def test_too_few_samples_are_no_trend() -> None:
    assert memory_trend([(0.0, 1.0), (1.0, 2.0)]) == {}
