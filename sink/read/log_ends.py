"""Where topics begin and end in Kafka now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from sink.position import LogEnds, TopicPartition
from sink.progress import Connection, postgres_now
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.positions import Isolation, earliest_offsets, end_offsets


@dataclass(frozen=True, slots=True)
class Log:
    """A topic as Kafka shows it now: its identity, and each partition's first offset and end."""

    identity: TopicIdentity
    first: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


def read_log(admin: AdminClient, identity: TopicIdentity) -> Log:
    """List where the partitions of a topic begin and end (high watermark)."""
    names = [TopicPartition(identity.topic, partition) for partition in range(identity.partitions)]
    first = earliest_offsets(admin, identity.topic, range(identity.partitions))
    return Log(identity, {name: first[name.partition] for name in names}, _ends(admin, names, "read_uncommitted"))


def is_within_log(admin: AdminClient, positions: Mapping[TopicPartition, int]) -> bool:
    """Return whether the log of each partition of a topic still has the next offset, or is yet to get it."""
    topic = next(iter(positions)).topic
    first = earliest_offsets(admin, topic, [name.partition for name in positions])
    return all(first[name.partition] <= offset for name, offset in positions.items())


def log_ends(connection: Connection, admin: AdminClient, names: Collection[TopicPartition]) -> LogEnds:
    """Read Postgres' clock, then the high watermarks: in this order a record at or above an end is younger."""
    listed_at = postgres_now(connection)
    return LogEnds(_ends(admin, names, "read_uncommitted"), listed_at)


def stable_ends(admin: AdminClient, names: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the last stable offsets: how far a read_committed reader can get now."""
    return _ends(admin, names, "read_committed")


def _ends(admin: AdminClient, names: Collection[TopicPartition], isolation: Isolation) -> dict[TopicPartition, int]:
    """Return the ends of partitions of one topic."""
    topic = next(iter(names)).topic
    ends = end_offsets(admin, topic, sorted(name.partition for name in names), isolation)
    return {name: ends[name.partition] for name in names}
