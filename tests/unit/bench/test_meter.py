"""The meter inside a contender: marks at the given calls, and what lies between two of them."""

from __future__ import annotations

import os
import time

import pytest

from bench.contenders import meter as meter_module
from bench.contenders.flows import shares_of_limit
from bench.contenders.meter import NS_PER_MS, Mark, Meter, between
from bench.contenders.percentile import percentile
from bench.contenders.process_usage import NS_PER_S, cpu_ns_of, memory_of


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * NS_PER_S
        self.cpu_ns = 7 * NS_PER_S

    def monotonic_ns(self) -> int:
        return self.now_ns

    def process_time_ns(self) -> int:
        return self.cpu_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * NS_PER_S)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(meter_module, "time", own)
    return own


def test_a_mark_is_made_at_each_given_call_and_at_no_other() -> None:
    seen: list[Mark] = []
    meter = Meter((1, 3, 4), seen.append)
    for _ in range(10):
        meter.count()
    assert [mark.calls for mark in seen] == [1, 3, 4]
    assert meter.calls == 10


def test_between_two_marks_lies_what_was_used_up_there(clock: Clock) -> None:
    seen: list[Mark] = []
    meter = Meter((2, 5), seen.append)
    for _ in range(5):
        began_ns = meter.began()
        clock.sleep(0.25)
        clock.cpu_ns += 10 * NS_PER_MS
        meter.ended(began_ns, 200)
    line = between(*seen)
    assert line["records"] == 3
    assert line["seconds"] == pytest.approx(0.75)
    assert line["cpu_s"] == pytest.approx(0.03)
    assert line["calls_s"] == pytest.approx(0.75)
    assert line["ordered_s"] == pytest.approx(0.6)
    assert "p50_ms" not in line


def test_calls_under_way_count_as_busy_for_as_long_as_they_have_run(clock: Clock) -> None:
    seen: list[Mark] = []
    meter = Meter((1, 2), seen.append)
    first, second, third = meter.began(), meter.began(), meter.began()
    clock.sleep(1)
    meter.ended(first, 1000)  # two others have run for a second
    clock.sleep(2)
    meter.ended(second, 2500)  # one other has run for three
    line = between(*seen)
    assert line["calls_s"] == pytest.approx(3.0)
    assert line["ordered_s"] == pytest.approx(2.5)  # of the same call
    assert line["busy_s"] == pytest.approx(4.0)  # two calls in flight for two seconds
    meter.ended(third, 3000)


def test_a_loop_that_stands_still_loses_what_its_calls_were_late(clock: Clock) -> None:
    seen: list[Mark] = []
    meter = Meter((4, 20), seen.append)
    for _ in range(5):
        beginnings = [meter.began() for _ in range(4)]
        clock.sleep(0.5)
        for began_ns in beginnings:
            meter.ended(began_ns, 200)
    known = shares_of_limit(between(*seen), 4)
    assert known["share_of_limit"] == pytest.approx(1.0)  # none of the four ever waited for a record
    assert known["share_of_ordered_limit"] == pytest.approx(0.4)


def test_latencies_are_those_noted_since_the_mark_before() -> None:
    seen: list[Mark] = []
    meter = Meter((2, 102), seen.append)
    for _ in range(2):
        meter.note(60 * NS_PER_S)
    for milliseconds in range(1, 101):
        meter.note(milliseconds * NS_PER_MS)
    line = between(*seen)
    assert (line["p50_ms"], line["p99_ms"]) == (50, 99)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0], 0.5, 3.0), ([3.0], 0.99, 3.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 2.0], 0.51, 2.0), ([1.0, 2.0], 0.99, 2.0)],
)
def test_a_percentile_is_the_least_value_that_the_share_is_not_above(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == expected


def test_memory_is_that_of_this_process() -> None:
    now, peak = memory_of()
    assert 1_000_000 < now <= peak


def test_a_real_mark_has_all_its_figures() -> None:
    seen: list[Mark] = []
    meter = Meter((1, 2), seen.append)
    for _ in range(2):
        began_ns = meter.began()
        time.sleep(0.002)
        meter.ended(began_ns, 2)
    line = between(*seen)
    assert line["records"] == 1
    assert 0.002 == line["ordered_s"] <= line["calls_s"] <= line["seconds"] * 1.01
    assert line["cpu_s"] >= 0
    assert line["rss_bytes"] >= line["rss_now_bytes"] > 0


def test_a_process_beside_is_read_at_each_mark() -> None:
    seen: list[Mark] = []
    meter = Meter((1, 2), seen.append, os.getpid())
    meter.count()
    while cpu_ns_of(os.getpid()) - (seen[0].beside_cpu_ns or 0) < 20 * NS_PER_MS:
        pass
    meter.count()
    assert 0.02 <= between(*seen)["beside_cpu_s"] < 5
