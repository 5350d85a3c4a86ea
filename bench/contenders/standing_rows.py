"""Rows that Postgres makes by itself: registrations with time left, and registrations that are due."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.product import connection_to
from bench.contenders.wait_log import CUSTOMERS, GROUP, INPUT_PARTITIONS, INPUT_TOPIC
from bench.harness.row import Bench
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import end_offsets
from wait_registry.settings.tree import Settings

SQL: Final = Path(__file__).with_name("standing_rows.sql")
STANDING: Final = "8000"
DUE: Final = "9000"
DAY_S: Final = 86_400.0
INDEXES: Final = """
select indexname, indexdef from pg_indexes
where schemaname = %s and tablename = 'wait' and indexname <> 'wait_pkey'
"""
COLUMNS: Final = """
select string_agg(attname, ', ' order by attname) from pg_attribute
where attrelid = 'wait'::regclass and attname in ('delivery', 'max_deliveries', 'attempt', 'max_attempts')
"""
PROGRESS: Final = """
insert into sink_progress (topic, topic_id, partition, next_offset, position_time, seen_at)
values (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
on conflict (topic, partition) do update
set topic_id = excluded.topic_id, next_offset = excluded.next_offset, position_time = excluded.position_time
"""

Connection = psycopg.Connection[TupleRow]


def stand(bench: Bench, settings: Settings, rows: int) -> None:
    """Fill an empty `wait` with registrations that aren't due, and leave nothing for autovacuum to do."""
    began = time.monotonic()
    with connection_to(settings) as connection:
        with _indexed_afterwards(connection, settings):
            _insert(connection, settings, STANDING, range(1, rows + 1), DAY_S)
        tidy(connection)
    bench.say(f"{settings.postgres.schema_name} holds {rows} rows after {time.monotonic() - began:.0f} s")


def register_due(settings: Settings, indexes: range) -> None:
    """Insert registrations whose time is up, and write down that the sink is at the log's end, in one transaction.

    Their wait records aren't in the log, which nothing reads here: their offset is that of another one's, far behind.
    """
    with connection_to(settings) as connection, connection.transaction():
        _insert(connection, settings, DUE, indexes, -3600.0 - indexes.stop / 1000)
        write_positions(connection, settings)


def remove_due(settings: Settings) -> None:
    """Delete the rows that are due, as the sink does when it reads the tombstones of their export."""
    with connection_to(settings) as connection:
        connection.execute("delete from wait where wait_expiration_time < now()")


def write_positions(connection: Connection, settings: Settings, *, from_start: bool = False) -> None:
    """Write down that a sink has read the log to its end, or that it has been here and read nothing."""
    client, topic = admin(settings.kafka), settings.wait.topic
    topic_id = describe_topic(client, topic).topic_id
    ends = end_offsets(client, topic, range(settings.wait.partitions), "read_uncommitted")
    rows = [(topic, topic_id, partition, 0 if from_start else end) for partition, end in ends.items()]
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(PROGRESS, rows)


def tidy(connection: Connection) -> None:
    """Leave nothing that Postgres would do later by itself, in the middle of a measurement."""
    connection.execute("vacuum (analyze) wait")
    connection.execute("checkpoint")


def _insert(connection: Connection, settings: Settings, variant: str, indexes: range, expires_in_s: float) -> None:
    row = connection.execute(COLUMNS).fetchone()
    assert row is not None
    span = {"first": indexes.start, "last": indexes.stop - 1, "expires_in_s": expires_in_s}
    own = {"id_prefix": f"00000000-0000-8000-{variant}-", "stand": int(variant == STANDING)}
    shop = {"input_topic": INPUT_TOPIC, "input_partitions": INPUT_PARTITIONS, "customers": CUSTOMERS, "group": GROUP}
    names = {"topic": settings.wait.topic, "partitions": settings.wait.partitions}
    query = SQL.read_text("utf-8").replace("{deliveries}", row[0])
    connection.execute(query.encode(), {**shop, **names, **span, **own})


@contextmanager
def _indexed_afterwards(connection: Connection, settings: Settings) -> Iterator[None]:
    """Make the indexes of `wait` when the block is over: as dense as they get, in a fraction of the time."""
    indexes = connection.execute(INDEXES.encode(), (settings.postgres.schema_name,)).fetchall()
    for name, _ in indexes:
        connection.execute(f"drop index {name}".encode())
    yield
    for _, definition in indexes:
        connection.execute(definition.encode())
