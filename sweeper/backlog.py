"""The backlog of dead letters and what redrives did, counted in the tables, as readings of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow, namedtuple_row

from wait_registry.postgres.queries import Queries
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.metrics import Metric

QUERIES: Final = Queries("backlog")
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


def read_backlog(connection: psycopg.Connection[TupleRow], operations_topic: str) -> list[Reading]:
    """Count open dead letters, new error classes and what redrives did.

    Args:
        connection: in autocommit, as a role that may read the tables.
        operations_topic: its name.

    Returns:
        One reading per metric and label values, `MOST_SERIES` and `OTHERS` per metric at most.

    Raises:
        psycopg.Error: Postgres is unavailable; retry.
    """
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        parameters = {**BOUNDS, "operations_topic": operations_topic}

        def rows(name: str) -> list[Any]:
            return cursor.execute(QUERIES[name], parameters).fetchall()

        return [
            *_of_open(rows("open_dead_letters")),
            *_of_classes(rows("new_error_classes")),
            *_of_redrives(rows("redrive_categories"), rows("redrive_outcomes")),
            *_of_jobs(rows("jobs")),
            *_of_tables(rows("operations_staleness")),
        ]


def bounded(counts: Counts, merge: Callable[[float, float], float], most: int = MOST_SERIES) -> Counts:
    """Keep the largest counts, and merge the others into one.

    Args:
        counts: label values and their count.
        merge: of two counts, the one of both together.
        most: how many are kept.

    Returns:
        Each label values once; the merged ones are all `OTHERS`.
    """
    merged: dict[tuple[str, ...], float] = {}
    for number, (labels, count) in enumerate(sorted(counts, key=lambda each: (-each[1], each[0]))):
        key = labels if number < most else (OTHERS,) * len(labels)
        merged[key] = merge(merged[key], count) if key in merged else count
    return merged.items()


def _readings(metric: Metric, counts: Counts, merge: Callable[[float, float], float] = float.__add__) -> list[Reading]:
    return [Reading(metric, count, labels) for labels, count in bounded(counts, merge)]


def _of_open(rows: Sequence[Any]) -> Iterator[Reading]:
    counts = [((row.consumer_group, row.topic, row.reason), float(row.dead_letters)) for row in rows]
    yield from _readings(metrics.DEAD_LETTERS_OPEN, counts)
    ages: dict[tuple[str, ...], float] = {}
    for row in rows:
        place = (row.consumer_group, row.topic)
        ages[place] = max(ages.get(place, 0.0), row.oldest_s or 0.0)
    yield from _readings(metrics.DEAD_LETTER_OLDEST_OPEN, ages.items(), max)


def _of_classes(rows: Sequence[Any]) -> Iterator[Reading]:
    places = [(row.consumer_group, row.topic) for row in rows]
    classes = zip(places, (float(row.classes) for row in rows), strict=True)
    yield from _readings(metrics.DEAD_LETTER_NEW_ERROR_CLASSES, classes)
    dead_letters = zip(places, (float(row.dead_letters) for row in rows), strict=True)
    yield from _readings(metrics.DEAD_LETTERS_OF_NEW_ERROR_CLASSES, dead_letters)


def _of_redrives(categories: Sequence[Any], outcomes: Sequence[Any]) -> Iterator[Reading]:
    counts = [((row.category,), float(row.dead_letters)) for row in categories]
    yield from _readings(metrics.REDRIVE_RECORDS, counts)
    became = [((row.consumer_group, row.outcome), float(row.records)) for row in outcomes]
    yield from _readings(metrics.REDRIVE_OUTCOMES, became)


def _of_jobs(rows: Sequence[Any]) -> Iterator[Reading]:
    found = {row.state: row for row in rows}
    for (state,) in metrics.REDRIVE_JOBS.known:
        yield Reading(metrics.REDRIVE_JOBS, float(found[state].jobs) if state in found else 0.0, (state,))
    running = found.get("running")
    yield Reading(metrics.REDRIVE_LONGEST_SILENCE, max(0.0, running.longest_silence_s) if running else 0.0)


def _of_tables(rows: Sequence[Any]) -> Iterator[Reading]:
    for row in rows:
        if row.staleness_s is not None:
            yield Reading(metrics.OPERATIONS_STALENESS, max(0.0, row.staleness_s))
