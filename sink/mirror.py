"""Positions mirrored to a Kafka consumer group, so that ordinary lag tools see the sink."""

from __future__ import annotations

import logging

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Assignment

from sink.position import Positions
from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)


class MirrorState:
    """What became of the last commits, told when it changes; refers to no client, which could not be freed then."""

    def __init__(self) -> None:
        self._failures: dict[str, str | None] = {}

    def answered(self, error: KafkaError | None, offsets: list[Assignment]) -> None:
        """Take the broker's answer to a commit: an error for all of it, or one beside each partition."""
        failures: dict[str, str | None] = {}
        for place in offsets:
            refused = error or place.error
            failures[place.topic] = failures.get(place.topic) or (refused.str() if refused is not None else None)
        for topic, failure in failures.items():
            self.told(topic, failure)

    def told(self, topic: str, failure: str | None) -> None:
        """Log ``failure``, None for success, unless the topic's commit before ended in the same way."""
        before, self._failures[topic] = self._failures.get(topic), failure
        if failure is not None and failure != before:
            log.warning("the sink's offsets of %s could not be mirrored to its consumer group: %s", topic, failure)
        elif failure is None and before is not None:
            log.info("the sink's offsets of %s are mirrored to its consumer group again", topic)


class OffsetMirror:
    """Commits positions to a group that nobody is a member of; only a copy: nothing ever starts from it."""

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._state = MirrorState()
        with usable_settings():
            self._consumer = Consumer(consumer_config(kafka, **{"group.id": group, "on_commit": self._state.answered}))

    def commit(self, positions: Positions) -> None:
        """Send the positions; does not wait, and a failure is only logged, once the broker has answered."""
        offsets = [Assignment(name.topic, name.partition, place.next_offset) for name, place in positions.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            for topic in {name.topic for name in positions}:
                self._state.told(topic, str(error))
        self.poll()

    def poll(self) -> None:
        """Take the answers that have come to earlier commits; nothing is subscribed, so nothing else comes."""
        self._consumer.poll(0)

    def close(self) -> None:
        """Give the client back."""
        self._consumer.close()
