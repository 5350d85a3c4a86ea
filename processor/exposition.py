"""The processor's numbers as metrics, read at scrape time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from processor.assigned_partition import AssignedPartition
from processor.broker_link import BrokerLink
from processor.stats import Stats
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import HistogramReading, Reading


def stats_readings(stats: Stats, link: BrokerLink) -> Iterator[Reading | HistogramReading]:
    """Return the counters; lists are copied, since the event loop goes on writing."""
    yield Reading(metrics.PROCESSOR_REGISTERED, stats.registered)
    yield Reading(metrics.PROCESSOR_RENEWED, stats.renewed)
    yield Reading(metrics.PROCESSOR_BROKER_UP, link.up)
    yield Reading(metrics.PROCESSOR_CLOCK_SKEW, stats.clock_skew_ms / 1000)
    for metric, counter in (
        (metrics.PROCESSOR_CONSUMED, stats.consumed),
        (metrics.PROCESSOR_SETTLED, stats.settled),
        (metrics.PROCESSOR_DEAD_LETTERS, stats.dead_letters),
        (metrics.PROCESSOR_TRIES, stats.tries),
        (metrics.PROCESSOR_COMMITS, stats.commits),
        (metrics.PROCESSOR_REBALANCES, stats.rebalances),
    ):
        for label, count in list(counter.items()):
            yield Reading(metric, count, (label,))
    for outcome, latencies in list(stats.seconds.items()):
        yield HistogramReading(
            metrics.PROCESSOR_HANDLER_SECONDS, tuple(latencies.counts), latencies.total_s, (str(outcome),)
        )


def partition_readings(owners: Iterable[AssignedPartition]) -> Iterator[Reading]:
    """Return how many partitions are assigned, and how far each is behind."""
    count = 0
    for owner in owners:
        count += 1
        labels = (owner.topic, str(owner.partition))
        yield Reading(metrics.PROCESSOR_COMMIT_LAG, max(0, owner.position - max(owner.confirmed, 0)), labels)
        if owner.high_watermark >= 0 and owner.position >= 0:
            lag = max(0, owner.high_watermark - max(owner.position, owner.end_seen))
            yield Reading(metrics.PROCESSOR_CONSUMER_LAG, lag, labels)
    yield Reading(metrics.PROCESSOR_ASSIGNED, count)
