"""A tile has each number of its group, and each number leads to what it counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from console.tables import Answer
from console.tiles import MOST_OPEN, Tile, tiles
from redrive.filter import parse_filter
from wait_registry.postgres.query_file import load_query

NOW = datetime(2026, 11, 27, 20, 0, 30, tzinfo=UTC)
ROW: dict[str, Any] = {
    "consumer_group": "pay*ments",
    "waiting": 1_234,
    "stuck": 5,
    "overdue": 0,
    "open_dead_letters": 7,
    "open_since": NOW - timedelta(days=2),
    "oldest_open": "a:b.dlq:3:17",
    "last_hour": 3,
    "by_minute": [0] * 57 + [1, 0, 2],
    "job": "7c1f09ab23de",
    "job_state": "paused",
}


def tile(**changes: Any) -> Tile:
    row = {**ROW, **changes}
    (made,) = tiles(Answer(load_query("groups_now"), {}, list(row), [list(row.values())], False), NOW)
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
    conditions = parse_filter(parse_qs(urlsplit(link).query)["where"], NOW)
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
