"""Read one record from its topic."""

from __future__ import annotations

from time import monotonic

from confluent_kafka import Consumer, KafkaException, TopicPartition

from wait_registry.dead_letters.difference import Content
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.message_headers import headers_of
from wait_registry.records.operation import Place
from wait_registry.settings.kafka import KafkaSettings


def read_record(kafka: KafkaSettings, place: Place) -> Content:
    """Return the key, headers and value of a record.

    Args:
        kafka: the cluster.
        place: of the record.

    Raises:
        ConfigurationError: the topic doesn't have it any more, or never had.
        TransientError: no answer within the limit for requests.
    """
    at = TopicPartition(place.topic, place.partition, place.offset)
    doing = f"reading {place}"
    with usable_settings():
        consumer = Consumer(consumer_config(kafka, **{"group.id": "waitreg.dlq.diff"}))
    try:
        low, high = consumer.get_watermark_offsets(at, kafka.request_timeout_s)
        if not low <= place.offset < high:
            raise _gone(place, low, high)
        consumer.assign([at])
        end_s = monotonic() + kafka.request_timeout_s
        while monotonic() < end_s:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is not None:
                raise kafka_failure(error, doing)
            if message.offset() != place.offset:
                raise _gone(place, low, high)  # compacted, or a transaction's marker
            return Content(message.key(), tuple(headers_of(message) or ()), message.value())
        raise TransientError(f"{doing}: no answer within {kafka.request_timeout_s:g} s (kafka.request_timeout_s)")
    except KafkaException as error:
        raise kafka_failure(error, doing) from error
    finally:
        consumer.close()


def _gone(place: Place, low: int, high: int) -> ConfigurationError:
    return ConfigurationError(f"{place} isn't in its topic (offsets {low} to {high - 1} may be): it can't be compared")
