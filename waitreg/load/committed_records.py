"""Reads a topic's committed records, with a client that belongs to no service."""

from __future__ import annotations

import math
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Message

from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.log_reader import last_records
from wait_registry.kafka.message_headers import UNREADABLE, headers_of
from wait_registry.records.headers import Headers
from wait_registry.settings.tree import Settings


def read_committed(settings: Settings, topic: str) -> Iterator[Message]:
    """Return every committed record of a topic, up to its end.

    Raises:
        ConfigurationError: there is no such topic, or no permission to read it.
        TransientError: the cluster doesn't answer.
    """
    partitions = range(describe_topic(admin(settings.kafka), topic).partitions)
    return last_records(
        settings.kafka, "waitreg-reconciliation", topic, dict.fromkeys(partitions, OFFSET_BEGINNING), math.inf
    )


def read_headers(message: Message) -> Headers | None:
    """Return a record's headers; None when a name isn't UTF-8, which no record of ours has.

    Such a record must be asked once only: a second time the client hands out a null pointer as the name.
    """
    try:
        return headers_of(message) or ()
    except UNREADABLE:
        return None
