"""Which records of a group are registered now, as far as the tables know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib.util import find_spec
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from wait_registry.errors import WaitRegistryError
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.tree import Settings


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
    from waitreg.rewind.registered_rows import read_offsets  # it needs psycopg, an extra

    try:
        return Registered(*read_offsets(settings, admin, list(topics)))
    except WaitRegistryError as error:
        return Registered(None, str(error))
