"""Cells of a table, and the tile of a group: numbers, states, how long ago a time was, and where each leads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cells import Cell, cells
from console.moments import ago
from console.tables import Answer
from console.tiles import MOST_OPEN, Tile, tiles
from redrive.filter import parse_filter
from wait_registry.postgres.query_file import load_query


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


AT = datetime(2026, 11, 27, 20, 0, 30, tzinfo=UTC)
ROW: dict[str, Any] = {
    "consumer_group": "pay*ments",
    "waiting": 1_234,
    "stuck": 5,
    "overdue": 0,
    "open_dead_letters": 7,
    "open_since": AT - timedelta(days=2),
    "oldest_open": "a:b.dlq:3:17",
    "last_hour": 3,
    "by_minute": [0] * 57 + [1, 0, 2],
    "job": "7c1f09ab23de",
    "job_state": "paused",
}


def tile(**changes: Any) -> Tile:
    row = {**ROW, **changes}
    (made,) = tiles(Answer(load_query("groups_now"), {}, list(row), [list(row.values())], False), AT)
    return made


def test_each_fact_leads_to_what_it_counts() -> None:
    found = {one.name: (one.text, urlsplit(one.link).path, one.tone) for one in tile().facts}
    assert found == {
        "waiting": ("1,234", "/questions/stuck_now", ""),
        "stuck": ("5", "/questions/stuck_now", "warn"),
        "overdue": ("0", "/questions/overdue", ""),
        "open dead letters": ("7", "/dead-letters", "warn"),
        "oldest open": ("", "/dead-letters/a%3Ab.dlq/3/17", ""),
        "job": ("paused", "/jobs/7c1f09ab23de", "warn"),
    }


def test_the_list_of_a_group_is_of_that_group_alone() -> None:
    (link,) = (one.link for one in tile().facts if one.name == "open dead letters")
    conditions = parse_filter(parse_qs(urlsplit(link).query)["where"], AT)
    assert conditions.exact_values("group") == ("pay*ments",)
    assert conditions.exact_values("state") == ("open",)


def test_a_group_without_dead_letters_and_jobs_shows_none() -> None:
    quiet = tile(open_dead_letters=0, open_since=None, oldest_open=None, job=None, last_hour=0, by_minute=[0] * 60)
    assert [one.name for one in quiet.facts] == ["waiting", "stuck", "overdue", "open dead letters"]
    assert quiet.chart.bars == []


def test_a_number_that_is_not_counted_to_its_end_says_so() -> None:
    (text,) = (one.text for one in tile(open_dead_letters=MOST_OPEN + 1).facts if one.name == "open dead letters")
    assert text == "1,000 or more"


def test_the_latest_minute_is_at_the_right() -> None:
    chart = tile().chart
    assert [(bar.x // 10, bar.text) for bar in chart.bars] == [
        (57, "19:57, dead letters: 1"),
        (59, "19:59, dead letters: 2"),
    ]
    assert chart.width == 600
