"""What a sweep tells the outside: one log line, metrics, and a line for every row and partition left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from sweeper.outage import Outage
from sweeper.partition_result import PartitionResult, Skip
from sweeper.position import oldest_allowed
from sweeper.sweep import Sweep, SweepResult, unseen_rows
from wait_registry.logs import record_fields
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings

log = logging.getLogger(__name__)


class _View(NamedTuple):
    """Since when, on the monotonic clock, the view is what it is; and how old it may become, s."""

    since_s: float
    oldest_allowed_s: float


# Another sweeper at work is no trouble; the others want to be looked at, and these want a person's hand.
_LEVELS = {
    Skip.FENCED: logging.INFO,
    Skip.POSITION_TOO_OLD: logging.ERROR,
    Skip.TOPIC_CHANGED: logging.ERROR,
    Skip.REFUSED: logging.ERROR,
    Skip.FAILED: logging.ERROR,
}


class Instruments:
    """The sweeper's metrics; several may live in one process."""

    def __init__(self, registry: MetricsRegistry, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Make all metrics at once, so that they are exposed before the first sweep; those of the view with it."""
        self._sweeps = registry.counter(metrics.SWEEPER_SWEEPS)
        self._seconds = registry.histogram(metrics.SWEEPER_SWEEP_SECONDS)
        self._exported = registry.counter(metrics.SWEEPER_EXPORTED)
        self._redelivered = registry.counter(metrics.SWEEPER_REDELIVERED)
        self._superseded = registry.counter(metrics.SWEEPER_SUPERSEDED)
        self._unseen = registry.counter(metrics.SWEEPER_UNSEEN)
        self._set_aside = registry.counter(metrics.SWEEPER_SET_ASIDE)
        self._rows_set_aside = registry.gauge(metrics.SWEEPER_ROWS_SET_ASIDE)
        self._skipped = registry.counter(metrics.SWEEPER_SKIPPED)
        self._due = registry.gauge(metrics.SWEEPER_DUE)
        self._oldest_due = registry.gauge(metrics.SWEEPER_OLDEST_DUE)
        self._last_sweep = registry.gauge(metrics.SWEEPER_LAST_SWEEP)
        self._last_success = registry.gauge(metrics.SWEEPER_LAST_SUCCESS)
        self._purged = registry.counter(metrics.SWEEPER_PURGED)
        self._postgres_up = registry.gauge(metrics.SWEEPER_POSTGRES_UP)
        self._monotonic = monotonic
        self._outage = Outage()
        self._view: _View | None = None
        registry.collect_from(self._view_readings)

    def swept(self, sweep: Sweep) -> None:
        """Report a sweep that ended, however it did."""
        self._sweeps.labels(sweep.result.value).inc()
        self._seconds.observe(sweep.duration_s)
        self._exported.inc(sweep.exported)
        self._redelivered.inc(sweep.redelivered)
        self._superseded.inc(sweep.superseded)
        self._unseen.inc(sweep.unseen)
        self._set_aside.inc(sweep.set_aside)
        for skipped in sweep.skipped:
            self._skipped.labels(skipped.skip.value).inc()
        ended = sweep.started_at.timestamp() + sweep.duration_s
        if sweep.result in (SweepResult.DONE, SweepResult.PARTIAL):
            self._last_sweep.set(ended)
            self._rows_set_aside.set(sweep.set_aside)
        if sweep.result is SweepResult.DONE:
            self._last_success.set(ended)
        log.log(self._level(sweep), "%s", sweep.in_words(), extra={"sweep": sweep.as_fields()})

    def _level(self, sweep: Sweep) -> int:
        """Return how loudly to tell a sweep; the end of an outage is told here."""
        if sweep.result is SweepResult.FAILED:
            return logging.ERROR if self._outage.failed(self._monotonic(), sweep.reason) else logging.DEBUG
        over = self._outage.over(self._monotonic())
        if over is not None:
            log.info("%s", over)
        return logging.WARNING if sweep.result is SweepResult.PARTIAL else logging.INFO

    def left_out(self, wait_topic: str, results: Sequence[PartitionResult]) -> None:
        """Report partitions that were not finished and rows that were set aside, each by name (the first of them).

        Rows that the log doesn't know are only counted: no wait topic tells more of them than the view does.
        """
        for result in results:
            if result.unseen:
                fields = record_fields(topic=wait_topic, partition=result.partition)
                log.error("%s", unseen_rows(result.unseen), extra=fields)
            if result.skip is not None:
                level = _LEVELS.get(result.skip, logging.WARNING)
                fields = record_fields(topic=wait_topic, partition=result.partition)
                log.log(level, "partition left (%s): %s", result.skip.value, result.reason, extra=fields)
            for row in result.named:
                fields = record_fields(wait_id=row.wait_id, topic=row.topic, partition=row.partition, offset=row.offset)
                log.error("expired registration set aside (%s): %s", row.obstacle.value, row.reason, extra=fields)

    def due(self, rows: int, oldest: datetime | None, now: datetime) -> None:
        """Report what is due, and since when."""
        self._due.set(rows)
        self._oldest_due.set(0 if oldest is None else max(0.0, (now - oldest).total_seconds()))

    def view(self, staleness_s: float, delete_retention_ms: int) -> None:
        """Report how old the view's oldest position is, and what bounds its age."""
        self._view = _View(self._monotonic() - staleness_s, oldest_allowed(delete_retention_ms).total_seconds())

    def purged(self, rows: dict[str, int]) -> None:
        """Report rows deleted because of their age."""
        for table, count in rows.items():
            self._purged.labels(table).inc(count)
        if any(rows.values()):
            log.info("purged old rows: %s", rows)

    def postgres(self, up: bool) -> None:
        """Report whether Postgres answered."""
        self._postgres_up.set(up)

    def _view_readings(self) -> Readings:
        # It grows on while nobody can look: that is when somebody must be told.
        view = self._view
        if view is not None:
            yield Reading(metrics.SWEEPER_STALENESS, max(0.0, self._monotonic() - view.since_s))
            yield Reading(metrics.SWEEPER_STALENESS_LIMIT, view.oldest_allowed_s)
