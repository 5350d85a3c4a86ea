"""The sink's numbers, as /metrics and /health show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import psycopg

from sink.apply.applier import Applied
from sink.read.kafka_reader import ReadFailed
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.postgres.errors import error_text
from wait_registry.records.tombstone import oldest_allowed
from wait_registry.service.health import Health
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings

Monotonic = Callable[[], float]
Cause = Literal["postgres", "kafka", "spark", "other"]


class TopicState:
    """What is known of one topic: set by the sink, read by the thread that serves /metrics and /health."""

    def __init__(self, stream: str, longest_silence_s: float, monotonic: Monotonic = time.monotonic) -> None:
        """``stream`` labels the metrics; a healthy topic has a batch or a refresh within ``longest_silence_s``."""
        self.stream = stream
        self._monotonic = monotonic
        self._longest_silence_s = longest_silence_s
        self._trouble: str | None = "not started yet"
        self._seen_at = 0.0
        self._applied: Applied | None = None
        self._oldest_allowed_s: float | None = None

    def reading(self, delete_retention_ms: int | None) -> None:
        """Note that reading starts; that it can read and write shows with its first batch, or when nothing is left.

        ``delete_retention_ms`` bounds the age of the topic's positions, None for no bound.
        """
        if self._trouble is not None:
            self._trouble = "its first batch since the start isn't written yet"
        if delete_retention_ms is not None:
            self._oldest_allowed_s = oldest_allowed(delete_retention_ms).total_seconds()

    def committed(self, applied: Applied) -> None:
        """Note a batch, or idle positions that were written down; a batch ends any trouble there was."""
        self._seen_at = self._monotonic()
        self._applied = applied
        if applied.written is not None:
            self._trouble = None

    def caught_up(self) -> None:
        """Note that nothing is left to read, which ends any trouble there was."""
        self._trouble = None

    def broken(self, reason: str) -> None:
        """Note why the topic isn't read."""
        self._trouble = reason

    @property
    def up(self) -> bool:
        """Whether the topic is read and written."""
        return self._trouble is None

    def reasons(self) -> list[str]:
        """Return why this topic isn't ready, nothing when it is."""
        trouble, silent_s = self._trouble, self._monotonic() - self._seen_at
        if trouble is None and silent_s > self._longest_silence_s:
            trouble = f"nothing committed for {silent_s:.0f} s"
        return [] if trouble is None else [f"{self.stream} stream: {trouble}"]

    def readings(self) -> Readings:
        """Return lag and staleness as of now."""
        applied, limit_s = self._applied, self._oldest_allowed_s
        if applied is None:
            return
        for name, position in applied.positions.items():
            lag = max(0, applied.ends.ends[name] - position.next_offset)
            yield Reading(metrics.SINK_LAG, float(lag), (name.topic, str(name.partition)))
        oldest_s = max((datetime.now(UTC) - each.position_time).total_seconds() for each in applied.positions.values())
        topic = next(iter(applied.positions)).topic
        yield Reading(metrics.SINK_STALENESS, max(0.0, oldest_s), (topic,))
        if limit_s is not None:
            yield Reading(metrics.SINK_STALENESS_LIMIT, limit_s, (topic,))


class SinkTelemetry:
    """Counters of the whole sink, and its health."""

    def __init__(self, registry: MetricsRegistry, states: Sequence[TopicState]) -> None:
        """``states`` are those of the topics."""
        self.registry = registry
        self._states = states
        self._standby: str | None = "checking Postgres and Kafka"
        self._records = registry.counter(metrics.SINK_RECORDS)
        self._batches = registry.counter(metrics.SINK_BATCHES)
        self._seconds = registry.histogram(metrics.SINK_BATCH_SECONDS)
        self._rows = registry.counter(metrics.SINK_ROWS_WRITTEN)
        self._deleted = registry.counter(metrics.SINK_ROWS_DELETED)
        self._quarantined = registry.counter(metrics.SINK_QUARANTINED)
        self._passed = registry.counter(metrics.SINK_PASSED)
        self._late = registry.counter(metrics.SINK_LATE)
        self._restarts = registry.counter(metrics.SINK_RESTARTS)
        registry.gauge(metrics.SINK_STANDBY).set_function(lambda: float(self._standby == "standby"))
        self._postgres_up = registry.gauge(metrics.SINK_POSTGRES_UP)
        registry.collect_from(self._readings)

    def committed(self, state: TopicState, applied: Applied, seconds: float) -> None:
        """Note what was committed, and count it if it was a batch, which took ``seconds`` since its reading began."""
        state.committed(applied)
        self._postgres_up.set(1.0)
        written = applied.written
        if written is None:
            return
        self._records.labels(state.stream).inc(applied.records)
        self._batches.labels(state.stream).inc()
        self._seconds.labels(state.stream).observe(seconds)
        self._rows.labels(written.table).inc(written.rows)
        self._deleted.inc(written.deleted)
        self._quarantined.labels(state.stream).inc(written.quarantined)
        self._late.inc(written.marked)

    def passed(self, topic: str, offsets: int) -> None:
        """Count offsets of a topic that were deleted before they were read."""
        self._passed.labels(topic).inc(offsets)

    def failed(self, state: TopicState, error: Exception) -> None:
        """Count a start that a failure makes necessary, and note why the topic isn't read."""
        self._restarts.labels(state.stream, cause_of(error)).inc()
        state.broken(error_text(error))

    def broken(self, reason: str) -> None:
        """Note why no topic is read."""
        for state in self._states:
            state.broken(reason)

    def postgres(self, up: bool) -> None:
        """Note whether Postgres answers."""
        self._postgres_up.set(float(up))

    def waiting(self, reason: str | None) -> None:
        """Note what the whole sink waits for (``standby``, Spark, Postgres), None when it works."""
        self._standby = reason

    def ready(self) -> Health:
        """Ready: the lock held, Postgres there, every topic read, and lately heard of."""
        if self._standby is not None:
            return Health.of([self._standby])
        return Health.of([reason for state in self._states for reason in state.reasons()])

    def live(self) -> Health:
        """Live for as long as the process answers: what can't continue ends it."""
        return Health(True)

    def _readings(self) -> Readings:
        up: dict[str, bool] = {}
        for state in self._states:
            up[state.stream] = up.get(state.stream, True) and state.up
            yield from state.readings()
        for stream, is_up in up.items():
            yield Reading(metrics.SINK_QUERY_UP, float(is_up), (stream,))


def cause_of(error: Exception) -> Cause:
    """Return where a failure came from, as restarts are counted by it."""
    if isinstance(error, psycopg.Error | PostgresUnavailable):
        return "postgres"
    if isinstance(error, ReadFailed):
        return "spark"
    return "kafka" if isinstance(error, TransientError | ConfigurationError) else "other"
