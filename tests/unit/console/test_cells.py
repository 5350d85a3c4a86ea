"""Cells of a table: numbers, long texts, states and how long ago a time was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cells import Cell, cells
from console.moments import ago


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        ("records", 7, Cell("7", kind="number")),
        ("finished", True, Cell("yes")),
        ("message", "no answer from the payment service within thirty seconds", None),
        ("wait", "x" * 60, Cell("x" * 60)),
        ("reason", "failed", Cell("failed", tone="bad")),
        ("reason", "something else", Cell("something else")),
        ("state", "open", Cell("open", tone="warn")),
        ("by", "open", Cell("open")),
    ],
)
def test_a_value_has_the_form_of_its_kind(column: str, value: object, cell: Cell | None) -> None:
    (found,) = cells([column], [value])
    assert found == (cell or Cell(str(value), kind="long"))


def test_the_link_of_a_group_selects_this_group_alone() -> None:
    (found,) = cells(["consumer_group"], ["a*"])
    assert found.link == "/dead-letters?where=group%3Da%5C%2A"


def test_a_state_is_always_a_word() -> None:
    for column, value in [("state", "redriven"), ("reason", "expired"), ("result", "partial"), ("outcome", "waiting")]:
        (found,) = cells([column], [value])
        assert (found.text, found.tone != "") == (value, True)


NOW = datetime(2026, 11, 27, 20, 0, tzinfo=UTC)
LENGTHS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(milliseconds=900), "now"),
        (timedelta(seconds=59.9), "59 s ago"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=47, minutes=59), "47 h ago"),
        (timedelta(hours=48), "2 d ago"),
        (timedelta(days=400), "400 d ago"),
        (timedelta(minutes=-5), "in 5 min"),
        (timedelta(days=-3), "in 3 d"),
    ],
)
def test_a_distance_has_one_unit(before: timedelta, text: str) -> None:
    assert ago(NOW - before, NOW) == text


def test_the_time_zone_of_a_time_does_not_matter() -> None:
    assert ago((NOW - timedelta(hours=3)).astimezone(timezone(timedelta(hours=9))), NOW) == "3 h ago"


@given(st.timedeltas(timedelta(seconds=1), timedelta(days=10_000)))
def test_it_is_off_by_less_than_its_unit(before: timedelta) -> None:
    number, unit, _ = ago(NOW - before, NOW).split()
    assert 0 <= before.total_seconds() - int(number) * LENGTHS[unit] < LENGTHS[unit]
