"""The partitions whose committed offset isn't in the log."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from wait_registry.kafka.outside_log import outside_log
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.topics import TopicPartition
from waitreg.rewind.plan import Position
from waitreg.rewind.targets import by_topic


def outside(admin: AdminClient, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, Position]:
    """Return the positions of the partitions whose committed offset isn't in the log."""
    offsets = {place: found.committed for place, found in positions.items() if found.committed is not None}
    firsts = {place: positions[place].first for place in offsets}
    # High watermarks: while a transaction is open, an offset behind the last stable one is in the log, too.
    ends = {
        (topic, partition): end
        for topic, partitions in by_topic(offsets).items()
        for partition, end in end_offsets(admin, topic, partitions, "read_uncommitted").items()
    }
    return {place: positions[place] for place in outside_log(offsets, firsts, ends)}
