"""The properties of the processor's Kafka consumer."""

from __future__ import annotations

from typing import Any, Final

from wait_registry.kafka.clients import consumer_config
from wait_registry.settings.processor import AssignmentStrategy, GroupProtocol, ProcessorSettings
from wait_registry.settings.tree import Settings

# Measured: fetch.queue.backoff.ms of 1000, the default, halves the rate and more; the queues bound the memory.
TUNING: Final = {
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000,
    "queued.max.messages.kbytes": 16_384,
    "fetch.wait.max.ms": 100,
    # An eighth of the default: some 35 MB less at full pace, and as fast. Half of it triples the broker's work. Larger
    # records come all the same (KIP-74).
    "max.partition.fetch.bytes": 131_072,
    # Partitions that are added to a topic are found with a refresh: the default is five minutes.
    "topic.metadata.refresh.interval.ms": 30_000,
}

# With a record in its queue, the client fetches the next one at once unless this is the number that it keeps there:
# then it fetches again after `fetch.queue.backoff.ms`, so records are gathered in the broker.
GATHERING: Final = {"queued.min.messages": 1}

# Of two names of one property the last that is set counts.
_ALIASES = {"max.partition.fetch.bytes": "fetch.message.max.bytes"}


def tuning(settings: Settings) -> dict[str, Any]:
    """Return the tuning of a consumer, which ``kafka.librdkafka`` may change."""
    given = settings.kafka.librdkafka
    ours = TUNING | (GATHERING if settings.processor.gather_ms else {})
    return {name: value for name, value in ours.items() if _ALIASES.get(name) not in given} | given


def group_config(settings: Settings) -> dict[str, Any]:
    """Return the consumer's properties without the callbacks."""
    processor = settings.processor
    config = {**tuning(settings), "group.id": processor.group}
    config["auto.offset.reset"] = "error"
    config["group.protocol"] = processor.group_protocol.value
    if processor.group_protocol is GroupProtocol.CLASSIC:
        config["partition.assignment.strategy"] = processor.assignment_strategy.value
    return consumer_config(settings.kafka, **config)


def rebalances_incrementally(processor: ProcessorSettings) -> bool:
    """Return whether an assignment names only the partitions that are new, and a revocation those that go."""
    return (
        processor.group_protocol is GroupProtocol.CONSUMER
        or processor.assignment_strategy is AssignmentStrategy.COOPERATIVE_STICKY
    )
