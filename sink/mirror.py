"""Positions mirrored to a Kafka consumer group, so that ordinary lag tools see the sink."""

from __future__ import annotations

import logging

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from sink.position import Positions
from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.kafka.errors import is_access_problem
from wait_registry.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)

# How long the client keeps a commit whose coordinator it can't reach or may not ask, and with it the client's end. It
# has no other meaning for who is no member.
_COMMIT_KEPT_MS = 5_000


class MirrorState:
    """What became of the last commits, logged when it changes; refers to no client, which could not be freed then."""

    def __init__(self) -> None:
        self._failures: dict[str, str | None] = {}

    def answered(self, error: KafkaError | None, offsets: list[KafkaPartition]) -> None:
        """Take the broker's answer to a commit: an error for all of it, or one for each partition."""
        failures: dict[str, str | None] = {}
        for place in offsets:
            refused = error or place.error
            if refused is not None and refused.code() == KafkaError._WAIT_COORD and self._failures.get(place.topic):
                continue  # why it waits was logged
            failures[place.topic] = failures.get(place.topic) or (refused.str() if refused is not None else None)
        for topic, failure in failures.items():
            self.report(topic, failure)

    def report(self, topic: str, failure: str | None) -> None:
        """Log ``failure``, None for success, unless the topic's commit before ended in the same way."""
        before, self._failures[topic] = self._failures.get(topic), failure
        if failure is not None and failure != before:
            log.warning("the sink's offsets of %s could not be mirrored to its consumer group: %s", topic, failure)
        elif failure is None and before is not None:
            log.info("the sink's offsets of %s are mirrored to its consumer group again", topic)


class OffsetMirror:
    """Commits positions to a group without members; only a copy, from which nothing ever starts."""

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._state = MirrorState()
        self._topics: frozenset[str] = frozenset()
        with usable_settings():
            self._consumer = Consumer(
                consumer_config(
                    kafka,
                    **{
                        "group.id": group,
                        "on_commit": self._state.answered,
                        "session.timeout.ms": _COMMIT_KEPT_MS,
                    },
                )
            )

    def commit(self, positions: Positions) -> None:
        """Send the positions; does not wait, and a failure is only logged, once the broker has answered."""
        offsets = [KafkaPartition(name.topic, name.partition, place.next_offset) for name, place in positions.items()]
        self._topics = self._topics | {name.topic for name in positions}
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            for topic in {name.topic for name in positions}:
                self._state.report(topic, str(error))
        self.poll()

    def poll(self) -> None:
        """Take the answers that have come to earlier commits; nothing is subscribed, so no record comes.

        A missing permission on the group arrives here, not with the commits, which wait for its coordinator then.
        """
        event = self._consumer.poll(0)
        error = event.error() if event is not None else None
        if error is not None and is_access_problem(error):
            for topic in sorted(self._topics):
                self._state.report(topic, error.str())

    def close(self) -> None:
        """Give the client back."""
        self._consumer.close()
