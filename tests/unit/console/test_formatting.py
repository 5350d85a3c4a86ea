"""Cells, the card of a group and charts: numbers, states, times, bars, and where each leads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.dead_letters.filter import parse_filter
from wait_registry.postgres.query_file import load_query
from waitreg.console.charts import BUCKET, HEIGHT, MOST_BUCKETS, QUESTIONS, Chart, chart_of, nice
from waitreg.console.formatting import Cell, ago, cells
from waitreg.console.page import Asked
from waitreg.console.pages.now import MOST_OPEN, Card, cards
from waitreg.console.tables import Answer


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


def test_a_condition_keeps_the_blanks_at_the_end_of_its_value() -> None:
    asked = Asked({}, [("where", " key=card "), ("where", "  "), ("since", "2h")], NOW, None)
    assert asked.conditions() == ["key=card "]
    assert (asked._replace(query=[("where", " ")]).conditions(), asked._replace(query=()).conditions()) == ([], None)


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


def card(**changes: Any) -> Card:
    row = {**ROW, **changes}
    (made,) = cards(Answer(load_query("groups_now"), {}, list(row), [list(row.values())], False), AT)
    return made


def test_each_fact_leads_to_what_it_counts() -> None:
    found = {name: (one.text, urlsplit(one.link).path, one.tone) for name, one in card().facts.items()}
    assert found == {
        "waiting": ("1,234", "/questions/stuck_now", ""),
        "stuck": ("5", "/questions/stuck_now", "warn"),
        "overdue": ("0", "/questions/overdue", ""),
        "open dead letters": ("7", "/dead-letters", "warn"),
        "oldest open": ("", "/dead-letters/a%3Ab.dlq/3/17", ""),
        "job": ("paused", "/jobs/7c1f09ab23de", "warn"),
    }


def test_the_list_of_a_group_is_of_that_group_alone() -> None:
    link = card().facts["open dead letters"].link
    conditions = parse_filter(parse_qs(urlsplit(link).query)["where"], AT)
    assert conditions.exact_values("group") == ("pay*ments",)
    assert conditions.exact_values("state") == ("open",)


def test_a_group_without_dead_letters_and_jobs_shows_none() -> None:
    quiet = card(open_dead_letters=0, open_since=None, oldest_open=None, job=None, last_hour=0, by_minute=[0] * 60)
    assert list(quiet.facts) == ["waiting", "stuck", "overdue", "open dead letters"]
    assert quiet.chart.bars == []


def test_a_number_that_is_not_counted_to_its_end_says_so() -> None:
    assert card(open_dead_letters=MOST_OPEN + 1).facts["open dead letters"].text == "1,000 or more"


def test_the_latest_minute_is_at_the_right() -> None:
    chart = card().chart
    assert [(bar.x // 10, bar.text) for bar in chart.bars] == [
        (57, "19:57, dead letters: 1"),
        (59, "19:59, dead letters: 2"),
    ]
    assert chart.width == 600


MOMENT = datetime(2026, 11, 27, 18, 30, 20, tzinfo=UTC)


def minutes_ago(minutes: int) -> datetime:
    return MOMENT.replace(second=0) - timedelta(minutes=minutes)


def by_minute(rows: Sequence[Sequence[Any]], **given: str) -> Answer:
    query = load_query("burst_timeline")
    columns = ("minute", "still_waiting", "failed", "expired", "other_dead_letters")
    return Answer(query, {**query.defaults, **given}, columns, rows, False)


def by_reason(rows: Sequence[Sequence[Any]], more: bool = False, **given: str) -> Answer:
    query = load_query("dead_letters_over_time")
    columns = ("bucket", "reason", "error_class", "dead_letters", "finished_late")
    return Answer(query, {**query.defaults, **given}, columns, rows, more)


def chart(answer: Answer) -> Chart:
    found = chart_of(answer, MOMENT)
    assert found is not None
    return found


def test_a_bar_of_each_series_is_on_top_of_the_one_before() -> None:
    found = chart(by_minute([(minutes_ago(0), 0, 3, 5, 0)]))
    assert found.series == ["failed", "expired"]
    assert found.most == 8
    failed, expired = found.bars
    assert (failed.x, failed.y, failed.height) == (59 * BUCKET + 1, 62.5, 37.5)
    assert (expired.x, expired.y, expired.height) == (failed.x, 0, 62.5)
    assert failed.text == "18:30, failed: 3"


def test_the_last_hour_is_whole_whatever_minutes_have_rows() -> None:
    found = chart(by_minute([(minutes_ago(59), 1, 0, 0, 0)]))
    assert found.width == 60 * BUCKET
    assert found.bars[0].x == 1
    assert found.times == ["17:31", "17:46", "18:01", "18:16", "18:31"]


def test_a_span_that_was_asked_for_ends_with_its_rows() -> None:
    rows = [(minutes_ago(minutes), 1, 0, 0, 0) for minutes in (200, 190)]
    found = chart(by_minute(rows, **{"from": "4 hours ago"}))
    assert found.width == 11 * BUCKET
    assert [bar.x for bar in found.bars] == [1, 10 * BUCKET + 1]


def test_reasons_are_counted_over_their_error_classes() -> None:
    hour = MOMENT.replace(minute=0, second=0)
    rows = [(hour, "failed", "A", 2, 0), (hour, "failed", "B", 3, 0), (hour, None, None, 1, 0)]
    found = chart(by_reason(rows))
    assert [bar.text for bar in found.bars] == ["18:00, failed: 5", "18:00, foreign: 1"]
    assert found.width == 24 * BUCKET
    assert found.times[0] == found.times[-1] == "19:00"


def test_a_reason_that_has_no_series_is_foreign() -> None:
    found = chart(by_reason([(MOMENT.replace(minute=0, second=0), "x y", None, 1, 0)]))
    assert found.series == ["foreign"]


def test_an_incomplete_bucket_is_not_shown() -> None:
    hour = MOMENT.replace(minute=0, second=0)
    rows = [(hour - timedelta(hours=ago), "failed", "A", 1, 0) for ago in (0, 1, 2)]
    found = chart(by_reason(rows, more=True))
    assert found.width == 2 * BUCKET
    assert len(found.bars) == 2


def test_a_dead_letter_of_the_future_is_in_the_last_bucket() -> None:
    later = MOMENT.replace(minute=0, second=0) + timedelta(hours=3)
    assert chart(by_reason([(later, "failed", "A", 1, 0)])).bars[0].x == 23 * BUCKET + 1


def test_a_span_of_days_has_dates() -> None:
    found = chart(by_reason([(MOMENT.replace(minute=0, second=0), "failed", "A", 1, 0)], hours="48"))
    assert found.times[0] == "11-25 19:00"


@pytest.mark.parametrize(
    "answer",
    [
        by_minute([]),
        by_reason([(MOMENT, "failed", "A", 1, 0)], hours="24", minutes="1"),
        by_reason([(MOMENT, "failed", "A", 1, 0)], hours="50000000", minutes="1000000"),
        Answer(load_query("sizes"), {}, ("a",), [(1,)], False),
    ],
    ids=["no rows", "more buckets than a screen shows", "before the year 1", "another question"],
)
def test_other_answers_have_no_chart(answer: Answer) -> None:
    assert chart_of(answer, MOMENT) is None


def test_bars_never_leave_the_picture() -> None:
    rows = [(minutes_ago(ago), ago, 7 * ago % 11, ago % 3, 13 * ago % 5) for ago in range(60)]
    found = chart(by_minute(rows))
    for bar in found.bars:
        assert bar.x >= 0 and bar.x + bar.width <= found.width
        assert bar.y >= -0.01 and bar.y + bar.height <= HEIGHT + 0.01
        assert bar.height > 0


@pytest.mark.parametrize(
    ("most", "end"), [(0, 2), (1, 2), (3, 4), (5, 6), (9, 10), (11, 20), (61, 80), (90, 100), (101, 200), (999, 1000)]
)
def test_an_axis_ends_at_a_round_number(most: int, end: int) -> None:
    assert nice(most) == end


def test_charts_are_of_questions_that_exist() -> None:
    assert all(load_query(name) for name in QUESTIONS)
    assert MOST_BUCKETS >= 60
