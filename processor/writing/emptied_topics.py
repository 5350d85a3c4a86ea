"""Deletes what the group has committed of its retry and redelivery topics, which keep everything else.

A group that is away for longer than `offsets.retention.minutes` loses its offsets, and would handle every record again
that is still there. Kafka Streams empties its repartition topics in the same way and for the same reason (KIP-204).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from processor.intake.assigned_log import AssignedLog
from processor.intake.subscription import SubscribedTopic
from processor.protocol.partition import Partition
from wait_registry.daemon_threads import in_daemon_thread
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.kafka.cluster import topic_ids
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.records.topics import TopicPartition
from wait_registry.repeats import kind_of

log = logging.getLogger(__name__)

FIRST_S: Final = 5.0
EVERY_S: Final = 60.0


class Committed(NamedTuple):
    """A confirmed offset and the ID of the topic that it was committed in: another topic may have its name by now."""

    offset: int
    topic_id: str


@dataclass(slots=True)
class EmptiedTopics:
    """Deletes records of the assigned partitions up to the committed offsets.

    Args:
        admin: the client that asks.
        topics: the consumed topics, by name.
        assigned: the logs of the assigned partitions.
        partitions: the partitions as the engine knows them.
    """

    admin: AdminClient
    topics: Mapping[str, SubscribedTopic]
    assigned: Mapping[TopicPartition, AssignedLog]
    partitions: Mapping[TopicPartition, Partition]
    _emptied: dict[TopicPartition, Committed] = field(default_factory=dict, init=False)
    # Kinds of reasons, and the topics that a warning of that kind has named.
    _warned: set[tuple[str, str]] = field(default_factory=set, init=False)

    async def run_once(self) -> None:
        """Delete what was committed since the last time."""
        until = {place: each for place, each in self._committed().items() if each != self._emptied.get(place)}
        try:
            kept = await in_daemon_thread("emptied-topics", self._delete, until)
        except WaitRegistryError as error:
            kept = dict.fromkeys(until, error)
        self._emptied |= {place: each for place, each in until.items() if place not in kept}
        self._report(kept)

    def _committed(self) -> dict[TopicPartition, Committed]:
        """Return up to where partitions of retry and redelivery topics may be emptied."""
        found = {}
        for place, log_of in self.assigned.items():
            partition = self.partitions.get(place)
            if self.topics[place[0]].own and log_of.emptied_id and partition is not None and partition.confirmed >= 0:
                found[place] = Committed(partition.confirmed, log_of.emptied_id)
        return found

    def _delete(self, until: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, WaitRegistryError]:
        """Delete, and return what keeps its records and why: a refusal of one topic concerns no other."""
        kept: dict[TopicPartition, WaitRegistryError] = {}
        if not until:
            return kept
        ids = topic_ids(self.admin, {place[0] for place in until})
        asked = [
            KafkaPartition(*place, each.offset) for place, each in until.items() if ids.get(place[0]) == each.topic_id
        ]
        if not asked:
            return kept
        futures = self.admin.delete_records(asked, request_timeout=timeout_of(self.admin))
        for place, future in futures.items():
            try:
                answer(self.admin, future, f"deleting what is committed of {place.topic}[{place.partition}]")
            except WaitRegistryError as error:
                kept[place.topic, place.partition] = error
        return kept

    def _report(self, kept: Mapping[TopicPartition, WaitRegistryError]) -> None:
        refused = {
            (kind_of(str(error).replace(topic, "")), topic): error
            for (topic, _), error in kept.items()
            if isinstance(error, ConfigurationError)
        }
        if new := sorted(refused.keys() - self._warned):
            # Topics with another reason are named the next time.
            alike = [each for each in new if each[0] == new[0][0]]
            self._warned.update(alike)
            log.warning(
                "retry and redelivery topics aren't emptied: %s If this group is away for longer than the broker's "
                "offsets.retention.minutes, it handles again all that they hold. The processor tries again each "
                "minute. Topics: %s",
                refused[alike[0]],
                ", ".join(topic for _, topic in alike),
            )
        for error in [error for error in kept.values() if not isinstance(error, ConfigurationError)][:1]:
            log.info("retry and redelivery topics will be emptied later: %s", error)
