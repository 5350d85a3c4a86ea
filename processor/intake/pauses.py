"""Pauses and resumes the partitions of one client."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from processor.intake.assigned_log import AssignedLog
from processor.protocol.effects import Pause, Resume
from wait_registry.records.topics import TopicPartition


class Pauses:
    """Which partitions of a client are paused.

    Args:
        consumer: the client.
        assigned: the logs of its partitions, at whose positions they are resumed.

    Attributes:
        places: the paused partitions.
    """

    def __init__(self, consumer: Consumer, assigned: Mapping[TopicPartition, AssignedLog]) -> None:
        self._consumer = consumer
        self._assigned = assigned
        self.places: set[TopicPartition] = set()

    def apply(self, requests: Iterable[Pause | Resume]) -> None:
        """Pause and resume partitions, in order, between two polls."""
        for request in requests:
            (self.pause if isinstance(request, Pause) else self.resume)(request.places)

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Stop fetching partitions; librdkafka drops what it has fetched, and fetches it again after `resume`."""
        there = self._there(places)
        self.places.update((place.topic, place.partition) for place in there)
        self._consumer.pause(there)

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Fetch partitions again, at once.

        librdkafka's thread of the broker notices a resumed partition at its next round, up to a second later, and one
        that was sought at once (2.16: `rd_kafka_toppar_set_fetch_state` wakes that thread, resuming doesn't).
        """
        self.places.difference_update(places)
        there = self._there(places)
        self._consumer.resume(there)
        for partition in there:
            owner = self._assigned.get((partition.topic, partition.partition))
            if owner is not None and owner.position >= 0:
                self._seek(partition, owner.position)

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """Note partitions that are given up."""
        self.places.difference_update(places)

    def _seek(self, partition: KafkaPartition, offset: int) -> None:
        try:
            self._consumer.seek(KafkaPartition(partition.topic, partition.partition, offset))
        except KafkaException as error:
            # It has just been assigned, and begins at its start.
            if error.args[0].code() != KafkaError._STATE:
                raise

    def _there(self, places: Collection[TopicPartition]) -> list[KafkaPartition]:
        there = {(place.topic, place.partition) for place in self._consumer.assignment()}
        return [KafkaPartition(*place) for place in places if place in there]
