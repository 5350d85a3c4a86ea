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

    Workaround: it uses a consumer of the group that never subscribes, since ListConsumerGroupOffsets of librdkafka 2.16
    ends the process with a segmentation fault while the coordinator moves or loads.

    Args:
        kafka: the cluster.
        group: the consumer group; it need not exist.
        partitions: topic and number of each partition to ask for.
        timeout_s: how long to wait, s; by default ``kafka.request_timeout_s``. Without DESCRIBE on the group it
            takes all of this time, because librdkafka repeats its request for the coordinator.

    Returns:
        One per partition; the offset is negative if the group has committed none.

    Raises:
        ConfigurationError: no permission (DESCRIBE) on the group or a topic.
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
