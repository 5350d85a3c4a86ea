"""Rows of `wait` as the tests compare them, and records as our sink is given them."""

from __future__ import annotations

from tests.support.database import Database
from tests.support.kafka_io import ReadRecord
from tests.unit.sink.batches import Row
from wait_registry.settings.root import Settings


def wait_ids(database: Database, settings: Settings) -> set[str]:
    """Return the wait IDs of the open registrations."""
    return set(wait_places(database, settings))


def wait_places(database: Database, settings: Settings) -> dict[str, tuple[int, int]]:
    """Return partition and offset of each open registration, by wait ID."""
    found = database.rows(settings, "select wait_expiration_uuid, wait_partition, wait_offset from wait")
    return {wait_id: (partition, offset) for wait_id, partition, offset in found}


def as_row(record: ReadRecord) -> Row:
    """Return a record as our sink is given it."""
    time_ms = record.timestamp_ms
    return Row(record.key, record.value, record.partition, record.offset, time_ms, record.headers, record.topic)
