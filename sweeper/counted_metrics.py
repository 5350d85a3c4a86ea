"""Metrics that are counted in the tables: open dead letters, new error classes, and what became of redrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import DictRow, TupleRow, dict_row

from wait_registry.postgres.queries import Queries
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.metrics import Metric

QUERIES: Final = Queries("counted_metrics")
# Group and topic come from records, so that nothing else bounds how many there are.
MOST_SERIES: Final = 200
OTHERS: Final = "others"
BOUNDS: Final = {
    "recent_s": 3_600,
    "known_s": 7 * 86_400,
    "day_s": 86_400,
    "most_classes": 10_000,
    "most_of_class": 1_000,
    "most_marks": 10_000,
}

Counts = Iterable[tuple[tuple[str, ...], float]]


class Series(NamedTuple):
    """The series of a metric: the query, its column that is the value, and how two values are one."""

    query: str
    metric: Metric
    value: str
    merge: Callable[[float, float], float] = float.__add__


# A metric's labels are columns of the same names.
SERIES: Final = (
    Series("open_dead_letters", metrics.DEAD_LETTERS_OPEN, "dead_letters"),
    Series("open_dead_letters", metrics.DEAD_LETTER_OLDEST_OPEN, "oldest_s", max),
    Series("new_error_classes", metrics.DEAD_LETTER_NEW_ERROR_CLASSES, "classes"),
    Series("new_error_classes", metrics.DEAD_LETTERS_OF_NEW_ERROR_CLASSES, "dead_letters"),
    Series("redrive_categories", metrics.REDRIVE_RECORDS, "dead_letters"),
    Series("redrive_outcomes", metrics.REDRIVE_OUTCOMES, "records"),
    Series("jobs", metrics.REDRIVE_JOBS, "jobs"),
    Series("longest_silence", metrics.REDRIVE_LONGEST_SILENCE, "silence_s"),
    Series("operations_staleness", metrics.OPERATIONS_STALENESS, "staleness_s"),
)


def read_counted_metrics(connection: psycopg.Connection[TupleRow], operations_topic: str) -> list[Reading]:
    """Count open dead letters, new error classes and what redrives did.

    Args:
        connection: in autocommit, as a role that may read the tables.
        operations_topic: its name.

    Returns:
        One reading per metric and label values, `MOST_SERIES` and `OTHERS` per metric at most.

    Raises:
        psycopg.Error: Postgres is unavailable; retry.
    """
    parameters = {**BOUNDS, "operations_topic": operations_topic}
    with connection.cursor(row_factory=dict_row) as cursor:
        found = {name: cursor.execute(QUERIES[name], parameters).fetchall() for name in QUERIES.names()}
    return [reading for series in SERIES for reading in _readings(series, found[series.query])]


def bounded(counts: Counts, merge: Callable[[float, float], float], most: int = MOST_SERIES) -> Counts:
    """Merge counts of the same labels, keep the largest, and merge the others into one.

    Args:
        counts: label values and their count.
        merge: of two counts, the one of both together.
        most: how many are kept.

    Returns:
        Each label values once; the merged ones are all `OTHERS`.
    """
    merged: dict[tuple[str, ...], float] = {}
    for labels, count in counts:
        merged[labels] = merge(merged[labels], count) if labels in merged else count
    ordered = sorted(merged.items(), key=lambda each: (-each[1], each[0]))
    if len(ordered) <= most:
        return ordered
    others = reduce(merge, (count for _, count in ordered[most:]))
    return [*ordered[:most], ((OTHERS,) * len(ordered[0][0]), others)]


def _readings(series: Series, rows: Sequence[DictRow]) -> list[Reading]:
    metric = series.metric
    counts = [
        (tuple(row[label] for label in metric.labels), max(0.0, float(row[series.value])))
        for row in rows
        if row[series.value] is not None
    ]
    known = [(labels, 0.0) for labels in metric.known]
    return [Reading(metric, count, labels) for labels, count in bounded([*known, *counts], series.merge)]
