"""What a sweep tells the outside: one log line, metrics, and a line for every row and partition left out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from sweeper.partition_result import PartitionResult, Skip
from sweeper.sweep import Sweep, SweepResult
from wait_registry.logs import record_fields
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import MetricsRegistry

log = logging.getLogger(__name__)

# Another sweeper at work is no trouble; the others want to be looked at, and these want a person's hand.
_LEVELS = {
    Skip.FENCED: logging.INFO,
    Skip.POSITION_TOO_OLD: logging.ERROR,
    Skip.TOPIC_CHANGED: logging.ERROR,
    Skip.FAILED: logging.ERROR,
}
_SWEEP_LEVELS = {SweepResult.PARTIAL: logging.WARNING, SweepResult.FAILED: logging.ERROR}


class Instruments:
    """The sweeper's metrics; several may live in one process."""

    def __init__(self, registry: MetricsRegistry) -> None:
        """Make all metrics at once, so that they are exposed before the first sweep."""
        self._sweeps = registry.counter(metrics.SWEEPER_SWEEPS)
        self._seconds = registry.histogram(metrics.SWEEPER_SWEEP_SECONDS)
        self._exported = registry.counter(metrics.SWEEPER_EXPORTED)
        self._redelivered = registry.counter(metrics.SWEEPER_REDELIVERED)
        self._superseded = registry.counter(metrics.SWEEPER_SUPERSEDED)
        self._unseen = registry.counter(metrics.SWEEPER_UNSEEN)
        self._set_aside = registry.counter(metrics.SWEEPER_SET_ASIDE)
        self._skipped = registry.counter(metrics.SWEEPER_SKIPPED)
        self._due = registry.gauge(metrics.SWEEPER_DUE)
        self._oldest_due = registry.gauge(metrics.SWEEPER_OLDEST_DUE)
        self._last_success = registry.gauge(metrics.SWEEPER_LAST_SUCCESS)
        self._staleness = registry.gauge(metrics.SWEEPER_STALENESS)
        self._purged = registry.counter(metrics.SWEEPER_PURGED)
        self._postgres_up = registry.gauge(metrics.SWEEPER_POSTGRES_UP)

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
        if sweep.result is SweepResult.DONE:
            self._last_success.set(sweep.started_at.timestamp() + sweep.duration_s)
        log.log(
            _SWEEP_LEVELS.get(sweep.result, logging.INFO), "%s", sweep.in_words(), extra={"sweep": sweep.as_fields()}
        )

    def left_out(self, wait_topic: str, results: Sequence[PartitionResult]) -> None:
        """Report partitions that were not finished and rows that were set aside, each by name (the first of them)."""
        for result in results:
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

    def view_staleness(self, seconds: float) -> None:
        """Report how old the view's oldest position is."""
        self._staleness.set(seconds)

    def purged(self, rows: dict[str, int]) -> None:
        """Report rows deleted because of their age."""
        for table, count in rows.items():
            self._purged.labels(table).inc(count)
        if any(rows.values()):
            log.info("purged old rows: %s", rows)

    def postgres(self, up: bool) -> None:
        """Report whether Postgres answered."""
        self._postgres_up.set(up)
