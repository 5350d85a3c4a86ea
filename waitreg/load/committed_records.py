"""Reads a topic's committed records, with a client that belongs to no service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from wait_registry.errors import TransientError
from wait_registry.kafka.clients import consumer_config
from wait_registry.settings.tree import Settings

BATCH = 1000

Headers = Sequence[tuple[str, bytes | None]] | None

# Not `message.headers()`: once CPython has specialised that call, an unreadable name's exception comes up elsewhere.
_headers_of: Callable[[Message], Headers] = methodcaller("headers")


def read_committed(settings: Settings, topic: str) -> Iterator[Message]:
    """Return every committed record of a topic, up to the end that it has at the call; raise TransientError."""
    own = {"group.id": "waitreg-reconciliation", "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer(consumer_config(settings.kafka, **own))
    try:
        partitions = consumer.list_topics(topic, timeout=settings.kafka.request_timeout_s).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        ended: set[int] = set()
        while len(ended) < len(partitions):
            for message in consumer.consume(BATCH, 0.1):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
                else:
                    raise TransientError(f"reading {topic} failed: {error.str()}")
    except KafkaException as error:
        raise TransientError(f"reading {topic} failed: {error.args[0].str()}") from error
    finally:
        consumer.close()


def read_headers(message: Message) -> Headers:
    """Return a record's headers; None when a name isn't UTF-8, which no record of ours has and the client can't read.

    Such a record must be asked once only: a second time the client hands out a null pointer as the name.
    """
    try:
        return _headers_of(message) or []
    except (SystemError, UnicodeDecodeError):
        return None
