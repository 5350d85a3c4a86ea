"""What a sweep reports: one log line, metrics, and a line for every skipped partition and unsendable row."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from sweeper.due import Due
from sweeper.result import PartitionResult, RowOutcome, Skip, Sweep, SweepResult, unseen_rows
from wait_registry.logs import record_fields
from wait_registry.records.tombstone import oldest_allowed
from wait_registry.repeats import Failures
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings

log = logging.getLogger(__name__)

# Another sweeper at work is no trouble; the rest are warnings, except those that an operator must fix.
_LEVELS = {
    Skip.FENCED: logging.INFO,
    Skip.POSITION_TOO_OLD: logging.ERROR,
    Skip.TOPIC_CHANGED: logging.ERROR,
    Skip.REFUSED: logging.ERROR,
    Skip.FAILED: logging.ERROR,
}


class Instruments:
    """The sweeper's metrics and log lines; several may live in one process."""

    def __init__(self, registry: MetricsRegistry, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Make all metrics at once, so that they are exposed before the first sweep; those of the tables with it."""
        self._sweeps = registry.counter(metrics.SWEEPER_SWEEPS)
        self._seconds = registry.histogram(metrics.SWEEPER_SWEEP_SECONDS)
        self._rows = registry.counter(metrics.SWEEPER_ROWS)
        self._unsendable = registry.gauge(metrics.SWEEPER_UNSENDABLE)
        self._skipped = registry.counter(metrics.SWEEPER_SKIPPED)
        self._due = registry.gauge(metrics.SWEEPER_DUE)
        self._oldest_due = registry.gauge(metrics.SWEEPER_OLDEST_DUE)
        self._last_sweep = registry.gauge(metrics.SWEEPER_LAST_SWEEP)
        self._last_success = registry.gauge(metrics.SWEEPER_LAST_SUCCESS)
        self._purged = registry.counter(metrics.SWEEPER_PURGED)
        self._postgres_up = registry.gauge(metrics.SWEEPER_POSTGRES_UP)
        self._monotonic = monotonic
        self._failures = Failures(log, "sweeps work again", monotonic)
        # Since when, on the monotonic clock, the tables are what they are; and how old they may become, s.
        self._tables: tuple[float, float] | None = None
        registry.collect_from(self._table_readings)

    def swept(self, sweep: Sweep) -> None:
        """Report a sweep that ended, however it did."""
        self._sweeps.labels(sweep.result.value).inc()
        self._seconds.observe(sweep.duration_s)
        for outcome, count in sweep.counts.items():
            self._rows.labels(outcome.value).inc(count)
        ended = sweep.started_at.timestamp() + sweep.duration_s
        if sweep.result in (SweepResult.DONE, SweepResult.PARTIAL):
            self._last_sweep.set(ended)
            self._unsendable.set(sweep.counts[RowOutcome.UNSENDABLE])
        if sweep.result is SweepResult.DONE:
            self._last_success.set(ended)
        for result in sweep.partitions:
            if result.skip is not None:
                self._skipped.labels(result.skip.value).inc()
            _log_partition(sweep.wait_topic, result)
        log.log(self._level(sweep), "%s", sweep.in_words(), extra={"sweep": sweep.as_fields()})

    def _level(self, sweep: Sweep) -> int:
        """Return the level at which to log a sweep; the end of failures is logged here."""
        if sweep.result is SweepResult.FAILED:
            return logging.ERROR if self._failures.is_news(sweep.reason) else logging.DEBUG
        self._failures.end()
        return logging.WARNING if sweep.result is SweepResult.PARTIAL else logging.INFO

    def due(self, due: Due, now: datetime) -> None:
        """Report how many rows are due, and since when."""
        self._due.set(due.rows)
        self._oldest_due.set(0 if due.oldest is None else max(0.0, (now - due.oldest).total_seconds()))

    def tables(self, staleness_s: float, delete_retention_ms: int) -> None:
        """Report how old the oldest position of the tables is, and what bounds its age."""
        self._tables = (self._monotonic() - staleness_s, oldest_allowed(delete_retention_ms).total_seconds())

    def purged(self, rows: dict[str, int]) -> None:
        """Report rows deleted because of their age."""
        for table, count in rows.items():
            self._purged.labels(table).inc(count)
        if any(rows.values()):
            log.info("purged old rows: %s", rows)

    def postgres(self, up: bool) -> None:
        """Report whether Postgres answered."""
        self._postgres_up.set(up)

    def _table_readings(self) -> Readings:
        # The age grows while the sweeper can't ask Postgres, which is when it matters.
        if self._tables is not None:
            since_s, oldest_allowed_s = self._tables
            yield Reading(metrics.SWEEPER_STALENESS, max(0.0, self._monotonic() - since_s))
            yield Reading(metrics.SWEEPER_STALENESS_LIMIT, oldest_allowed_s)


def _log_partition(wait_topic: str, result: PartitionResult) -> None:
    """Log why a partition was not finished and the first of its unsendable rows, each by name.

    Rows that the log doesn't have are only counted: no wait record could name them.
    """
    at = record_fields(topic=wait_topic, partition=result.partition)
    if unseen := result.counts[RowOutcome.UNSEEN]:
        log.error("%s", unseen_rows(unseen), extra=at)
    if result.skip is not None:
        level = _LEVELS.get(result.skip, logging.WARNING)
        log.log(level, "partition skipped (%s): %s", result.skip.value, result.reason, extra=at)
    for row in result.named:
        of = record_fields(wait_id=row.wait_id, topic=row.topic, partition=row.partition, offset=row.offset)
        log.error("expired registration is unsendable (%s): %s", row.obstacle.value, row.reason, extra=of)
