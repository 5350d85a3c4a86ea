"""The sink's numbers, as /metrics shows them, and its readiness."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import psycopg

from sink.apply.applier import Applied
from sink.health import TopicHealth
from sink.read.kafka_reader import ReadFailed
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.postgres.errors import error_text
from wait_registry.service.health import Health
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings

Cause = Literal["postgres", "kafka", "spark", "other"]


class SinkTelemetry:
    """Counters of the whole sink, and its health."""

    def __init__(self, registry: MetricsRegistry, states: Sequence[TopicHealth]) -> None:
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

    def committed(self, state: TopicHealth, applied: Applied, seconds: float) -> None:
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

    def failed(self, state: TopicHealth, error: Exception) -> None:
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
            yield from lag_and_staleness(state)
        for stream, is_up in up.items():
            yield Reading(metrics.SINK_QUERY_UP, float(is_up), (stream,))


def lag_and_staleness(state: TopicHealth) -> Readings:
    """Return how far the tables are behind a topic now."""
    applied, limit_s = state.applied, state.oldest_allowed_s
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


def cause_of(error: Exception) -> Cause:
    """Return where a failure came from, as restarts are counted by it."""
    if isinstance(error, psycopg.Error | PostgresUnavailable):
        return "postgres"
    if isinstance(error, ReadFailed):
        return "spark"
    return "kafka" if isinstance(error, TransientError | ConfigurationError) else "other"
