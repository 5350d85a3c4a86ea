"""Writes to a wait topic what processors and sweepers write, and keeps the rows that must come of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Producer

from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.settings.tree import Settings

ENCODER = WaitRecordEncoder("billing", "host-1", "orders.dlq", ExpiryRule("dlq", 3))


def new_id() -> str:
    """Return a key that no other record has."""
    return str(uuid.uuid4())


def in_ms(seconds: float) -> int:
    """Return a time so far from now, ms since the epoch."""
    return int((time.time() + seconds) * 1000)


def wait_record(
    wait_id: str,
    partition: int,
    *,
    value: bytes | None = b"{}",
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (),
    expires_in_s: float = 600.0,
    delivery: int = 1,
) -> Outgoing:
    """Return a wait record as a processor writes it."""
    original = Original("orders", 3, 41, 1_700_000_000_123, "create", key, value, headers)
    encoded = ENCODER.headers(original, wait_id, in_ms(expires_in_s), delivery)
    return Outgoing(key=wait_id.encode(), value=value or b"", headers=tuple(encoded), partition=partition)


def tombstone(wait_id: str, partition: int, outcome: Outcome = Outcome.DONE) -> Outgoing:
    """Return a tombstone as a processor or sweeper writes it."""
    return Outgoing(key=wait_id.encode(), value=None, headers=tuple(tombstone_headers(outcome)), partition=partition)


@dataclass
class WaitTopic:
    """A wait topic with the rows that its records make: ID -> partition and offset of the open registration."""

    topics: Topics
    name: str
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)

    def write(self, *records: Outgoing) -> list[tuple[int, int]]:
        """Write records in order, each to its partition; returns where they landed."""
        landed = self.topics.produce(self.name, list(records))
        for record, place in zip(records, landed, strict=True):
            assert record.key is not None
            if record.value is None:
                self.rows.pop(record.key.decode(), None)
            else:
                self.rows[record.key.decode()] = place
        return landed


def rows_of(database: Database, settings: Settings) -> dict[str, tuple[int, int]]:
    """Return what the table ``wait`` shows, as `WaitTopic.rows`."""
    rows = database.rows(settings, "select wait_expiration_uuid, wait_partition, wait_offset from wait")
    return {wait_id: (partition, offset) for wait_id, partition, offset in rows}


@contextmanager
def transaction(topics: Topics, topic: str, *, commit: bool) -> Iterator[Producer]:
    """Give a producer in a transaction that is committed or aborted at the end."""
    producer = Producer({"bootstrap.servers": topics.bootstrap, "transactional.id": new_id()})
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.flush(30)
    (producer.commit_transaction if commit else producer.abort_transaction)(30)
    topics.wait_settled(topic)
