"""A consumer group's committed offsets, read and set from outside."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.support.waiting import wait_until


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """Return the group's committed offsets of a topic, -1 where there is none.

    Not by an administrative client: its answer crashes the process while the group's coordinator loads (librdkafka).
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    asked = [TopicPartition(topic, partition) for partition in range(partitions)]
    try:
        answered = _of_the_coordinator(lambda: list(consumer.committed(asked, timeout=30)))
    finally:
        consumer.close()
    offsets = {partition.partition: partition.offset for partition in answered}
    return [max(offsets.get(partition, -1), -1) for partition in range(partitions)]


def commit_as_operator(bootstrap: str, group: str, offsets: list[TopicPartition]) -> None:
    """Set a group's offsets as kafka-consumer-groups does, while no member is there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        _of_the_coordinator(lambda: consumer.commit(offsets=offsets, asynchronous=False))
    finally:
        consumer.close()


def _of_the_coordinator(request: Callable[[], list[TopicPartition] | None]) -> list[TopicPartition]:
    """Return the answer of a group's coordinator, asking again while it moves."""

    def ask() -> list[TopicPartition] | None:
        try:
            return request()
        except KafkaException as error:
            # The first question of all to a broker that has just been started.
            if error.args[0].code() not in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS):
                raise
            return None

    return wait_until(ask, what="the group's coordinator")
