"""Read from the tables which records of a group are registered, and how far the tables are behind."""

from __future__ import annotations

from typing import Final

import psycopg
from confluent_kafka.admin import AdminClient

from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.postgres.connection import connect_pooled
from wait_registry.postgres.error_text import error_text
from wait_registry.postgres.queries import Queries
from wait_registry.postgres.schema import require_schema
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.tree import Settings

_QUERIES: Final = Queries("rewind")


def read_offsets(
    settings: Settings, admin: AdminClient, topics: list[str]
) -> tuple[dict[TopicPartition, list[int]], str]:
    """Return the offsets of registered records by partition, and what the tables lack, if anything.

    Raises:
        WaitRegistryError: Postgres or Kafka can't answer; the message says why.
    """
    wait_topic = describe_wait_topic(admin, settings.wait.topic, settings.wait.partitions)
    # The ends first: what the tables have of the log then is no older.
    ends = end_offsets(admin, wait_topic.topic, range(wait_topic.partitions))
    asked = {"wait_topic": wait_topic.topic, "topic_id": wait_topic.topic_id}
    question = {**asked, "group": settings.processor.group, "topics": topics}
    try:
        with connect_pooled(settings.postgres, application_name="waitreg rewind") as connection:
            require_schema(connection)
            positions = connection.execute(_QUERIES["positions"], asked).fetchall()
            rows = connection.execute(_QUERIES["registered"], question).fetchall()
    except psycopg.Error as error:
        raise WaitRegistryError(error_text(error)) from error
    next_offsets = {partition: offset for partition, offset, read_until in positions if offset >= read_until}
    lacking = sum(max(0, end - next_offsets.get(partition, 0)) for partition, end in ends.items())
    found: dict[TopicPartition, list[int]] = {}
    for topic, partition, offset in rows:
        found.setdefault((topic, partition), []).append(offset)
    return found, f"the tables lack {lacking} offsets of {wait_topic.topic}" if lacking else ""
