"""Which records of a group are registered now, as far as the tables know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import AdminClient

from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow


class Registered(NamedTuple):
    """The offsets of registered records by partition, None if they are unknown; and why they aren't all."""

    offsets: Mapping[TopicPartition, Collection[int]] | None
    missing: str = ""

    def of(self, place: TopicPartition) -> Collection[int] | None:
        """Return those of one partition."""
        return None if self.offsets is None else self.offsets.get(place, ())


def read_registered(settings: Settings, admin: AdminClient, topics: Iterable[str]) -> Registered:
    """Ask the tables, which know all registrations only if they have the wait topic up to its end.

    Args:
        settings: group, wait topic and Postgres.
        admin: the client that is asked for the ends of the wait topic.
        topics: of which input topics.
    """
    if find_spec("psycopg") is None:
        return Registered(None, "the extra isn't installed: pip install 'wait-registry[query]'")
    import psycopg

    from wait_registry.postgres.connection import connect_pooled
    from wait_registry.postgres.error_text import error_text
    from wait_registry.postgres.schema import require_schema

    try:
        with connect_pooled(settings.postgres, application_name="waitreg rewind") as connection:
            require_schema(connection)
            return _read(connection, settings, admin, list(topics))
    except psycopg.Error as error:
        return Registered(None, error_text(error))
    except WaitRegistryError as error:
        return Registered(None, str(error))


def _read(
    connection: psycopg.Connection[TupleRow], settings: Settings, admin: AdminClient, topics: list[str]
) -> Registered:
    from wait_registry.postgres.queries import Queries

    queries = Queries("rewind")
    wait_topic = describe_wait_topic(admin, settings.wait.topic, settings.wait.partitions)
    # The ends first: what the tables have of the log then is no older.
    ends = end_offsets(admin, wait_topic.topic, range(wait_topic.partitions))
    asked = {"wait_topic": wait_topic.topic, "topic_id": wait_topic.topic_id}
    next_offsets = {
        partition: next_offset
        for partition, next_offset, read_until in connection.execute(queries["positions"], asked)
        if next_offset >= read_until
    }
    lacking = sum(max(0, end - next_offsets.get(partition, 0)) for partition, end in ends.items())
    found: dict[TopicPartition, list[int]] = {}
    rows = connection.execute(queries["registered"], {**asked, "group": settings.processor.group, "topics": topics})
    for topic, partition, offset in rows:
        found.setdefault((topic, partition), []).append(offset)
    return Registered(found, f"the tables lack {lacking} offsets of {wait_topic.topic}" if lacking else "")
