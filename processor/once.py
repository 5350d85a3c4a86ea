"""``--once``: how far the records go that were there at the start."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka.admin import AdminClient

from processor.assigned_partition import AssignedPartition
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import end_offsets


def ends_now(admin: AdminClient, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """Return the end offset of every partition of the consumed topics."""
    ends: dict[tuple[str, int], int] = {}
    for topic in topics:
        partitions = range(describe_topic(admin, topic).partitions)
        ends |= {(topic, partition): end for partition, end in end_offsets(admin, topic, partitions).items()}
    return ends


def reached(ends: dict[tuple[str, int], int], assigned: Iterable[AssignedPartition]) -> bool:
    """Return whether all assigned partitions have been consumed to those ends (transaction markers count as read)."""
    return all(max(owner.position, owner.end_seen) >= ends.get((owner.topic, owner.partition), 0) for owner in assigned)
