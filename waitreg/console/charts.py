"""Counts over time as stacked bars: where each bar is, in a picture that is as wide as the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from wait_registry.records.dead_letter import Reason
from waitreg.console.tables import Answer

# The height of the picture, and the width of one bucket in it; the page stretches both to what it has.
HEIGHT: Final = 100
BUCKET: Final = 10
_BAR: Final = 8
# More bars than a screen can show have no chart.
MOST_BUCKETS: Final = 400
_LABELS: Final = 5


class Bar(NamedTuple):
    """A part of a bucket's bar: the series, the upper left corner, the size, and what it shows in words."""

    series: str
    x: int
    y: float
    width: int
    height: float
    text: str


class Chart(NamedTuple):
    """Bars with the names of the series that have any, from below, and the labels of both axes."""

    bars: Sequence[Bar]
    series: Sequence[str]
    width: int
    most: int
    times: Sequence[str]


class Counts(NamedTuple):
    """Counts by the beginning of a bucket and series; ``start`` and ``end`` (exclusive) say which buckets there are."""

    by_bucket: Mapping[tuple[datetime, str], int]
    series: Sequence[str]
    start: datetime
    end: datetime
    step: timedelta

    def buckets(self) -> int:
        """Return how many buckets there are."""
        return (self.end - self.start) // self.step


def chart_of(answer: Answer, now: datetime) -> Chart | None:
    """Return the chart of an answer, or None if the question has none.

    Args:
        answer: of any question; `QUESTIONS` names those with charts.
        now: the end of a span of time that ends now, UTC.
    """
    read = QUESTIONS.get(answer.question.name)
    if read is None or not answer.rows:
        return None
    try:
        counts = read(answer, now)
    except OverflowError:  # the span began before the year 1
        return None
    return drawn(counts) if counts.buckets() <= MOST_BUCKETS else None


def drawn(counts: Counts) -> Chart:
    """Return where the bars of counts are."""
    totals = Counter[datetime]()
    for (bucket, _), count in counts.by_bucket.items():
        totals[bucket] += count if counts.start <= bucket < counts.end else 0
    most = nice(max(totals.values(), default=0))
    bars = list(_bars(counts, most))
    there = {bar.series for bar in bars}
    series = [name for name in counts.series if name in there]
    return Chart(bars, series, counts.buckets() * BUCKET, most, _times(counts))


def nice(most: int) -> int:
    """Return the end of an axis on which a count has room: 2, 4, 6, 8, 10, 20, 40, and so on, so that it has a half."""
    unit: int = 10 ** (len(str(max(0, most - 1))) - 1)
    return next(factor * unit for factor in (2, 4, 6, 8, 10) if most <= factor * unit)


def _bars(counts: Counts, most: int) -> Iterator[Bar]:
    for number in range(counts.buckets()):
        bucket = counts.start + number * counts.step
        below = 0
        for series in counts.series:
            count = counts.by_bucket.get((bucket, series), 0)
            if count:
                top = round(HEIGHT * (1 - (below + count) / most), 2)
                text = f"{_time(bucket, counts)}, {series.replace('_', ' ')}: {count}"
                height = round(HEIGHT * count / most, 2)
                yield Bar(series, number * BUCKET + (BUCKET - _BAR) // 2, top, _BAR, height, text)
                below += count


def _times(counts: Counts) -> list[str]:
    part = (counts.end - counts.start) / (_LABELS - 1)
    return [_time(counts.start + number * part, counts) for number in range(_LABELS)]


def _time(at: datetime, counts: Counts) -> str:
    day = "%m-%d " if counts.end - counts.start > timedelta(days=1) else ""
    return f"{at.astimezone(UTC):{day}%H:%M}"


def _by_minute(answer: Answer, now: datetime) -> Counts:
    """Read burst_timeline: a row per minute with a column per series."""
    series = tuple(answer.columns[1:])
    minutes = [row[0] for row in answer.rows]
    step = timedelta(minutes=1)
    whole = now.replace(second=0, microsecond=0) + step
    start, end = whole - timedelta(hours=1), whole
    if answer.given != answer.question.defaults:
        start, end = min(minutes), max(minutes) + step
    by_bucket = {
        (row[0], name): count for row in answer.rows for name, count in zip(series, row[1:], strict=True) if count
    }
    return Counts(by_bucket, series, start, end, step)


def _by_reason(answer: Answer, now: datetime) -> Counts:
    """Read dead_letters_over_time: rows of a bucket, a reason and an error class, the newest first."""
    hours, minutes = int(answer.given["hours"]), int(answer.given["minutes"])
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    by_bucket = Counter[tuple[datetime, str]]()
    for row in rows:
        by_bucket[row["bucket"], row["reason"] if row["reason"] in REASONS else FOREIGN] += row["dead_letters"]
    step, newest, oldest = timedelta(minutes=minutes), rows[0]["bucket"], rows[-1]["bucket"]
    end = newest + (max(0, (now - newest) // step) + 1) * step
    # If there are more rows than the answer has, the oldest bucket isn't complete.
    start = oldest + step if answer.more else end - -(-hours * 60 // minutes) * step
    return Counts(by_bucket, REASONS, start, end, step)


FOREIGN: Final = "foreign"
REASONS: Final = (*(reason.value for reason in Reason), FOREIGN)
_Read = Callable[[Answer, datetime], Counts]
QUESTIONS: Final[Mapping[str, _Read]] = {"burst_timeline": _by_minute, "dead_letters_over_time": _by_reason}
