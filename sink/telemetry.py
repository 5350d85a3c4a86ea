"""The sink's numbers, as /metrics and /health show them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from sink.applier import Applied
from sink.position import TopicPartition, oldest_allowed
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings
from wait_registry.telemetry.health import Health

Monotonic = Callable[[], float]
Cause = Literal["postgres", "kafka", "spark", "other"]


class StreamState:
    """What is known of one stream: set by its threads, read by the thread that serves /metrics and /health."""

    def __init__(self, stream: str, longest_silence_s: float, monotonic: Monotonic = time.monotonic) -> None:
        """``longest_silence_s`` is how long a healthy stream may be without a batch or a refresh."""
        self.stream = stream
        self._monotonic = monotonic
        self._longest_silence_s = longest_silence_s
        self._guard = threading.Lock()
        self._trouble: str | None = "not started yet"
        self._worked = False
        self._seen_at: float | None = None
        self._applied: Applied | None = None
        self._oldest_allowed_s: float | None = None

    def bounded(self, delete_retention_ms: int | None) -> None:
        """Take note of what bounds the age of this stream's positions, None for no bound."""
        with self._guard:
            self._oldest_allowed_s = (
                None if delete_retention_ms is None else oldest_allowed(delete_retention_ms).total_seconds()
            )

    def reading(self) -> None:
        """A query is started; that it can read and write shows with its first batch, be it empty."""
        with self._guard:
            if self._trouble is not None:
                self._trouble = "its first batch since the start isn't written yet"

    def committed(self, applied: Applied) -> None:
        """Take note of a batch, or of idle positions that were written down; a batch ends any trouble there was."""
        with self._guard:
            if applied.written is not None:
                self._trouble = None
                self._worked = True
            self._seen_at = self._monotonic()
            self._applied = applied

    def broken(self, reason: str) -> None:
        """The query doesn't run."""
        with self._guard:
            self._trouble = reason

    def take_worked(self) -> bool:
        """Tell whether a batch was committed since this was last asked."""
        with self._guard:
            worked, self._worked = self._worked, False
            return worked

    def behind(self, read_to: Mapping[TopicPartition, int] | None = None) -> int:
        """Return how many offsets lay between the positions (or ``read_to``) and the logs' ends at the last commit."""
        with self._guard:
            applied = self._applied
        if applied is None:
            return 0
        places = read_to or {name: place.next_offset for name, place in applied.positions.items()}
        return sum(max(0, applied.ends.ends[name] - offset) for name, offset in places.items())

    def reasons(self) -> list[str]:
        """Return why this stream isn't ready, nothing when it is."""
        with self._guard:
            if self._trouble is not None:
                return [f"{self.stream} stream: {self._trouble}"]
            silent_s = self._monotonic() - (self._seen_at or 0.0)
            if silent_s > self._longest_silence_s:
                return [f"{self.stream} stream: nothing committed for {silent_s:.0f} s"]
            return []

    def readings(self) -> Readings:
        """Return lag and staleness as of now."""
        with self._guard:
            applied, up, limit_s = self._applied, self._trouble is None, self._oldest_allowed_s
        yield Reading(metrics.SINK_QUERY_UP, float(up), (self.stream,))
        if applied is None:
            return
        now = datetime.now(UTC)
        oldest: dict[str, datetime] = {}
        for name, position in applied.positions.items():
            lag = max(0, applied.ends.ends[name] - position.next_offset)
            yield Reading(metrics.SINK_LAG, float(lag), (name.topic, str(name.partition)))
            oldest[name.topic] = min(oldest.get(name.topic, position.position_time), position.position_time)
        for topic, position_time in oldest.items():
            yield Reading(metrics.SINK_STALENESS, max(0.0, (now - position_time).total_seconds()), (topic,))
            if limit_s is not None:
                yield Reading(metrics.SINK_STALENESS_LIMIT, limit_s, (topic,))


class SinkTelemetry:
    """Counters of the whole sink, and its health."""

    def __init__(self, registry: MetricsRegistry, streams: list[StreamState]) -> None:
        self.registry = registry
        self._streams = streams
        self._standby: str | None = "waiting for Postgres"
        self._records = registry.counter(metrics.SINK_RECORDS)
        self._batches = registry.counter(metrics.SINK_BATCHES)
        self._seconds = registry.histogram(metrics.SINK_BATCH_SECONDS)
        self._rows = registry.counter(metrics.SINK_ROWS_WRITTEN)
        self._deleted = registry.counter(metrics.SINK_ROWS_DELETED)
        self._quarantined = registry.counter(metrics.SINK_QUARANTINED)
        self._late = registry.counter(metrics.SINK_LATE)
        self._restarts = registry.counter(metrics.SINK_RESTARTS)
        registry.gauge(metrics.SINK_STANDBY).set_function(lambda: float(self._standby == "standby"))
        registry.gauge(metrics.READY).labels("sink").set_function(lambda: float(self.ready().ok))
        self._postgres_up = registry.gauge(metrics.SINK_POSTGRES_UP)
        registry.collect_from(self._readings)

    def batch(self, stream: str, applied: Applied, seconds: float) -> None:
        """Count a committed batch."""
        written = applied.written
        if written is None:
            return
        self._records.labels(stream).inc(applied.records)
        self._batches.labels(stream).inc()
        self._seconds.labels(stream).observe(seconds)
        self._rows.labels(written.table).inc(written.rows)
        self._deleted.inc(written.deleted)
        self._quarantined.labels(stream).inc(written.quarantined)
        self._late.inc(written.marked)

    def restart(self, stream: str, cause: Cause) -> None:
        """Count a restart."""
        self._restarts.labels(stream, cause).inc()

    def postgres(self, up: bool) -> None:
        """Note whether Postgres answers."""
        self._postgres_up.set(float(up))

    def waiting(self, reason: str | None) -> None:
        """Note what the whole sink waits for (``standby``, Postgres), None when it works."""
        self._standby = reason

    def ready(self) -> Health:
        """Ready: the lock held, Postgres there, every stream's query writing batches and lately heard of."""
        if self._standby is not None:
            return Health.of([self._standby])
        return Health.of([reason for stream in self._streams for reason in stream.reasons()])

    def live(self) -> Health:
        """Live for as long as the process answers: what can't go on ends it."""
        return Health(True)

    def _readings(self) -> Readings:
        for stream in self._streams:
            yield from stream.readings()
