"""A group's committed offsets, read without joining the group."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.kafka.errors import kafka_failure
from wait_registry.settings.kafka import KafkaSettings


def committed_offsets(
    kafka: KafkaSettings, group: str, partitions: Iterable[tuple[str, int]], timeout_s: float | None = None
) -> list[TopicPartition]:
    """Ask for committed offsets and their metadata.

    By a consumer of that group that never subscribes, and not by an administrative client: librdkafka (2.16) answers a
    group's ListConsumerGroupOffsets with a segmentation fault of the process while its coordinator moves or loads.

    Args:
        kafka: the cluster.
        group: whose offsets; it need not exist.
        partitions: topic and number of each partition to ask for.
        timeout_s: how long to wait, s; by default ``kafka.request_timeout_s``. A group that we may not see (DESCRIBE)
            takes the whole of it: librdkafka asks for its coordinator again and again.

    Returns:
        One a partition; its offset is negative where the group has committed none.

    Raises:
        ConfigurationError: we may not see the group (DESCRIBE) or a topic.
        TransientError: no answer in that time; retry.
    """
    asked = [TopicPartition(topic, number) for topic, number in partitions]
    if not asked:
        return []
    doing = f"reading the offsets of group {group}"
    with usable_settings():
        consumer = Consumer(consumer_config(kafka, **{"group.id": group}))
    try:
        found: list[TopicPartition] = consumer.committed(
            asked, timeout=kafka.request_timeout_s if timeout_s is None else timeout_s
        )
    except KafkaException as error:
        raise kafka_failure(error, doing) from error
    finally:
        consumer.close()
    refused = next((place.error for place in found if place.error is not None), None)
    if refused is not None:
        raise kafka_failure(refused, doing)
    return found
