"""Charts: where the bars of counts over time are, and which answers have any."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from console.charts import BUCKET, HEIGHT, MOST_BUCKETS, QUESTIONS, Chart, chart_of, nice
from console.tables import Answer
from wait_registry.postgres.query_file import load_query

NOW = datetime(2026, 11, 27, 18, 30, 20, tzinfo=UTC)


def minutes_ago(minutes: int) -> datetime:
    return NOW.replace(second=0) - timedelta(minutes=minutes)


def by_minute(rows: Sequence[Sequence[Any]], **given: str) -> Answer:
    query = load_query("burst_timeline")
    columns = ("minute", "still_waiting", "failed", "expired", "other_dead_letters")
    return Answer(query, {**query.defaults, **given}, columns, rows, False)


def by_reason(rows: Sequence[Sequence[Any]], more: bool = False, **given: str) -> Answer:
    query = load_query("dead_letters_over_time")
    columns = ("bucket", "reason", "error_class", "dead_letters", "finished_late")
    return Answer(query, {**query.defaults, **given}, columns, rows, more)


def chart(answer: Answer) -> Chart:
    found = chart_of(answer, NOW)
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
    hour = NOW.replace(minute=0, second=0)
    rows = [(hour, "failed", "A", 2, 0), (hour, "failed", "B", 3, 0), (hour, None, None, 1, 0)]
    found = chart(by_reason(rows))
    assert [bar.text for bar in found.bars] == ["18:00, failed: 5", "18:00, foreign: 1"]
    assert found.width == 24 * BUCKET
    assert found.times[0] == found.times[-1] == "19:00"


def test_a_reason_that_has_no_series_is_foreign() -> None:
    found = chart(by_reason([(NOW.replace(minute=0, second=0), "x y", None, 1, 0)]))
    assert found.series == ["foreign"]


def test_an_incomplete_bucket_is_not_shown() -> None:
    hour = NOW.replace(minute=0, second=0)
    rows = [(hour - timedelta(hours=ago), "failed", "A", 1, 0) for ago in (0, 1, 2)]
    found = chart(by_reason(rows, more=True))
    assert found.width == 2 * BUCKET
    assert len(found.bars) == 2


def test_a_dead_letter_of_the_future_is_in_the_last_bucket() -> None:
    later = NOW.replace(minute=0, second=0) + timedelta(hours=3)
    assert chart(by_reason([(later, "failed", "A", 1, 0)])).bars[0].x == 23 * BUCKET + 1


def test_a_span_of_days_has_dates() -> None:
    found = chart(by_reason([(NOW.replace(minute=0, second=0), "failed", "A", 1, 0)], hours="48"))
    assert found.times[0] == "11-25 19:00"


@pytest.mark.parametrize(
    "answer",
    [
        by_minute([]),
        by_reason([(NOW, "failed", "A", 1, 0)], hours="24", minutes="1"),
        by_reason([(NOW, "failed", "A", 1, 0)], hours="50000000", minutes="1000000"),
        Answer(load_query("sizes"), {}, ("a",), [(1,)], False),
    ],
    ids=["no rows", "more buckets than a screen shows", "before the year 1", "another question"],
)
def test_other_answers_have_no_chart(answer: Answer) -> None:
    assert chart_of(answer, NOW) is None


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
