"""The processor's numbers as metrics, read at scrape time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from processor.calls.retry_decision import time_limits
from processor.health.broker_connection import BrokerConnection
from processor.health.clock_watch import stop_at_s
from processor.health.stats import Latencies, Stats
from processor.intake.assigned_log import AssignedLog
from processor.protocol.partition import Partition
from processor.wiring import Parts
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import HistogramReading, Reading
from wait_registry.telemetry.metrics import Metric


def stats_readings(stats: Stats, connection: BrokerConnection) -> Iterator[Reading | HistogramReading]:
    """Return what is counted, each label value that can be known with 0 from the start."""
    yield Reading(metrics.PROCESSOR_REGISTERED, stats.registered)
    yield Reading(metrics.PROCESSOR_RENEWED, stats.renewed)
    yield Reading(metrics.PROCESSOR_PASSED_OVER, stats.passed_over)
    yield Reading(metrics.PROCESSOR_BROKER_UP, connection.up)
    yield Reading(metrics.PROCESSOR_CLOCK_SKEW, stats.clock_skew_ms / 1000)
    yield Reading(metrics.PROCESSOR_LAST_COMMIT, stats.last_commit_ms / 1000)
    for metric, counter in (
        (metrics.PROCESSOR_CONSUMED, stats.consumed),
        (metrics.PROCESSOR_SETTLED, stats.settled),
        (metrics.PROCESSOR_DEAD_LETTERS, stats.dead_letters),
        (metrics.PROCESSOR_RETRIES, stats.retries),
        (metrics.PROCESSOR_ATTEMPTS, stats.attempts),
        (metrics.PROCESSOR_COMMITS, stats.commits),
        (metrics.PROCESSOR_REBALANCES, stats.rebalances),
    ):
        yield from _counted(metric, counter)
    yield _histogram(metrics.PROCESSOR_QUEUE_SECONDS, stats.queue)
    for outcome, latencies in stats.seconds.items():
        yield _histogram(metrics.PROCESSOR_HANDLER_SECONDS, latencies, outcome)


def settings_readings(processor: ProcessorSettings, wait_instance: str) -> Iterator[Reading]:
    """Return what the settings say: who this is, and the limits that other numbers are held against."""
    yield Reading(metrics.PROCESSOR_INFO, 1, (processor.group, wait_instance))
    limits = time_limits(processor)
    yield Reading(metrics.PROCESSOR_QUEUE_LIMIT, limits.ttl_s - limits.start_needs_s)
    yield Reading(metrics.PROCESSOR_CLOCK_SKEW_LIMIT, stop_at_s(processor.margin_s))


def parts_readings(parts: Parts) -> Iterator[Reading]:
    """Return the records in flight and prefetched, the limits, and the lags."""
    engine, calls, slots = parts.loop.engine, parts.loop.calls, parts.flow.slots
    # Calls that outlive their attempt's limit in a thread have no deadline any more.
    blocked_threads = 0 if calls.slots is None else calls.slots.blocked
    for metric, value in (
        (metrics.PROCESSOR_IN_FLIGHT, calls.running),
        (metrics.PROCESSOR_IN_FLIGHT_LIMIT, slots.limit),
        (metrics.PROCESSOR_OLDEST_IN_FLIGHT, parts.watchdog.oldest_s()),
        (metrics.PROCESSOR_WAITING, slots.waiting),
        (metrics.PROCESSOR_PREFETCH, len(engine.records)),
        (metrics.PROCESSOR_PREFETCH_LIMIT, engine.flow.prefetch_limit),
        (metrics.PROCESSOR_PREFETCH_BYTES, engine.records.size),
        (metrics.PROCESSOR_UNACKNOWLEDGED, engine.records.in_flight()),
        (metrics.PROCESSOR_OUTBOX, parts.loop.writers.outbox.unacknowledged),
        (metrics.PROCESSOR_STALLED, parts.watchdog.late_s()),
        (metrics.PROCESSOR_BLOCKED_SLOTS, parts.blocked()),
        (metrics.PROCESSOR_LONG_CALLS, parts.watchdog.older_than(parts.blocked_after_s) + blocked_threads),
        (metrics.PROCESSOR_BLOCKED_CANCELLED, slots.blocked_cancelled),
        (metrics.PROCESSOR_PAUSED, engine.flow.paused),
        (metrics.PROCESSOR_REFUSED, len(engine.refused)),
        (metrics.PROCESSOR_START_PAUSE, slots.start_pause_s),
    ):
        yield Reading(metric, value)
    for route, free in () if parts.route_limits is None else parts.route_limits.free.items():
        yield Reading(metrics.PROCESSOR_ROUTE_FREE_SLOTS, free, (str(route),))
    yield from partition_readings(list(parts.loop.source.assigned.values()), dict(engine.partitions))


def partition_readings(
    owners: Iterable[AssignedLog], partitions: Mapping[TopicPartition, Partition]
) -> Iterator[Reading]:
    """Return how many partitions are assigned, and how far each is behind."""
    count = 0
    for owner in owners:
        count += 1
        labels = (owner.topic, str(owner.partition))
        partition = partitions.get(owner.place)
        if partition is not None:
            lag = max(0, partition.position - max(partition.confirmed, 0))
            yield Reading(metrics.PROCESSOR_COMMIT_LAG, lag, labels)
        if owner.lag is not None:
            yield Reading(metrics.PROCESSOR_CONSUMER_LAG, owner.lag, labels)
        delayed = partition is not None and partition.due_times is not None
        if (due := owner.due_lag(delayed)) is not None:
            yield Reading(metrics.PROCESSOR_DUE_LAG, due, labels)
    yield Reading(metrics.PROCESSOR_ASSIGNED, count)


def _counted(metric: Metric, counter: Counter[str]) -> Iterator[Reading]:
    # A copy, since the event loop continues to count.
    for label, count in {**{label: 0 for (label,) in metric.known}, **counter}.items():
        yield Reading(metric, count, (label,))


def _histogram(metric: Metric, latencies: Latencies, *labels: str) -> HistogramReading:
    return HistogramReading(metric, tuple(latencies.counts), latencies.total_s, labels)
