"""Several processes measured as one."""

from __future__ import annotations

import pytest

from bench.contenders.meter import Mark
from bench.contenders.process_usage import NS_PER_S
from bench.contenders.shared_window import shared_window


def mark(second: float, calls: int, cpu_s: float = 0.0) -> Mark:
    """Return a mark at a second of the machine's clock."""
    return Mark(calls, round(second * NS_PER_S), round(cpu_s * NS_PER_S), calls * 10, calls * 20, calls * 10, 100, 200)


def steady(start_s: float, calls_per_s: int, seconds: int, cpu_share: float = 0.5) -> list[Mark]:
    """Return a mark a second of a process that works evenly."""
    return [mark(start_s + n, calls_per_s * n, cpu_share * n) for n in range(1, seconds + 1)]


def test_the_window_is_where_all_are_at_work_and_holds_what_was_asked_for() -> None:
    line = shared_window([steady(0, 100, 20), steady(2.5, 300, 20)], 1000, 5000)
    assert line is not None
    assert line["records"] == pytest.approx(4000, rel=0.1)
    assert line["records"] / line["seconds"] == pytest.approx(400)
    assert line["cpu_s"] / line["seconds"] == pytest.approx(1.0)
    assert line["ordered_s"] == pytest.approx(0.02 * line["records"])
    assert (line["rss_bytes"], line["rss_now_bytes"]) == (400, 200)
    assert line["uneven_share"] == pytest.approx(2 / 3)


def test_a_process_that_started_late_shortens_nothing_but_moves_the_window() -> None:
    early, late = steady(0, 100, 60), steady(30, 100, 30)
    line = shared_window([early, late], 1000, 2000)
    assert line is not None
    assert line["records"] / line["seconds"] == pytest.approx(200)


@pytest.mark.parametrize(
    "processes",
    [
        [steady(0, 100, 20), []],
        [steady(0, 100, 20), steady(0, 100, 1)],
        [steady(0, 100, 20), steady(0, 100, 19)],
        [steady(0, 100, 9), steady(40, 100, 40)],
    ],
    ids=["one has not begun", "one has just begun", "not enough yet", "they were never at work together"],
)
def test_there_is_no_line_before_the_window_is_over(processes: list[list[Mark]]) -> None:
    assert shared_window(processes, 1000, 4000) is None
