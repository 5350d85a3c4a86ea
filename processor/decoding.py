"""From a client's message to the record to work on and its wait id."""

from __future__ import annotations

from confluent_kafka import Message

from wait_registry.errors import PermanentError
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.records.consumed import Consumed, consumed
from wait_registry.records.headers import Headers
from wait_registry.records.original import TIMESTAMP_TYPES
from wait_registry.records.wait_id import wait_id


def decode(
    message: Message, topic: str, partition: int, group: str, cluster_id: str
) -> tuple[Consumed, str, PermanentError | None]:
    """Return the record, its wait id, and why it can't be registered as it is, if so.

    Args:
        message: without an error.
        topic, partition: where it was consumed; the message would make new objects of them at each call.
        group: the consumer group.
        cluster_id: the Kafka cluster's id.

    Returns:
        With an error the record has no headers: dead-letter it as `malformed`, since what is registered must come out
        as it went in.
    """
    offset = message.offset()
    kind, timestamp_ms = message.timestamp()
    timestamp_type = TIMESTAMP_TYPES[kind]
    if timestamp_type == "none":
        timestamp_ms = -1
    headers: Headers | None = None
    unreadable = None
    try:
        headers = headers_of(message)
    except UNREADABLE as error:
        unreadable = PermanentError(
            "a header's name isn't UTF-8, so the client can't read the headers; this dead letter has key and value "
            f"only. Read the record itself at {topic}[{partition}] offset {offset} while it is there"
        )
        unreadable.__cause__ = error
    taken = consumed(
        topic, partition, offset, timestamp_ms, timestamp_type, message.key(), message.value(), headers, group
    )
    return taken, wait_id(cluster_id, topic, partition, offset, group, timestamp_ms), unreadable
