"""Rows of `wait`: standing ones, made by Postgres itself, and due ones, whose wait records stand in the log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.our_settings import connection_to
from bench.contenders.wait_log import GROUP, INPUT_PARTITIONS, INPUT_TOPIC, INSTANCE, Registrations, WaitLog
from bench.contenders.wait_log_writer import WaitLogWriter
from bench.harness.row import Bench
from sink.position import Position, TopicPartition
from sink.progress import begin_progress, forget_progress, postgres_now
from wait_registry.kafka.clients import admin
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.records.headers import encode_headers_json
from wait_registry.settings.root import Settings

# Open registrations of the last hours, none of them due for a day; the ids are in their order of time, as real ones.
FILL: Final = f"""
insert into wait (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp,
    original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group,
    instance, delivery, dead_letter_topic, expiry_policy, max_deliveries, wait_topic, wait_partition, wait_offset)
select
    '00000000-0000-8000-8000-' || lpad(to_hex(i), 12, '0'), '{INPUT_TOPIC}', i %% {INPUT_PARTITIONS},
    i / {INPUT_PARTITIONS}, convert_to('customer-' || i * 7919 %% 200000, 'UTF8'), now(),
    (extract(epoch from now()) * 1000)::bigint, 'create', '[["tenant", "YWNtZQ=="]]',
    now() + interval '1 day' + make_interval(secs => i / 1000.0), convert_to(repeat(md5(i::text), 6), 'UTF8'),
    '{GROUP}', 'host-' || i %% 16, 1, %(dead_letter_topic)s, 'dlq', 3, %(topic)s, i %% %(partitions)s,
    i / %(partitions)s
from generate_series(1, %(rows)s::bigint) as i
"""
INDEXES: Final = """
select indexname, indexdef from pg_indexes
where schemaname = %s and tablename = any(%s) and indexname <> tablename || '_pkey'
"""
COPY: Final = """
copy wait (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp,
    original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group,
    instance, delivery, dead_letter_topic, expiry_policy, max_deliveries, wait_topic, wait_partition, wait_offset)
from stdin
"""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def stand(bench: Bench, settings: Settings, rows: int) -> None:
    """Fill an empty `wait` with open registrations that aren't due, and leave nothing for autovacuum to do."""
    began = time.monotonic()
    with connection_to(settings) as connection:
        values = {
            "rows": rows,
            "topic": settings.wait.topic,
            "partitions": settings.wait.partitions,
            "dead_letter_topic": settings.dead_letter.topic,
        }
        with indexed_afterwards(connection, settings, "wait"):
            connection.execute(FILL.encode(), values)
        tidy(connection)
    bench.say(f"{rows} rows stand in {settings.postgres.schema_name} after {time.monotonic() - began:.0f} s")


@contextmanager
def indexed_afterwards(connection: psycopg.Connection[TupleRow], settings: Settings, *tables: str) -> Iterator[None]:
    """Make the tables' indexes when the block is over: as dense as they get, in a fraction of the time."""
    indexes = connection.execute(INDEXES.encode(), (settings.postgres.schema_name, list(tables))).fetchall()
    for name, _ in indexes:
        connection.execute(f"drop index {name}".encode())
    yield
    for _, definition in indexes:
        connection.execute(definition.encode())


def register_due(settings: Settings, log: WaitLog, *, first: int = 0) -> None:
    """Register records whose time is up: their wait records in the log, their rows and the log's end in Postgres.

    That is what a sink that has caught up would have written, in one transaction too.

    Args:
        settings: of the sweeper.
        log: with `left_open_every=1` and an expiry in the past.
        first: index of the first registration, for a topic that gets more than one log.
    """
    places: list[tuple[int, int, int]] = []
    WaitLogWriter(settings.kafka, lambda *place: places.append(place)).write(log, first=first)
    made = Registrations(log, time.time_ns() // 1_000_000)
    with connection_to(settings) as connection, connection.transaction():
        with connection.cursor() as cursor, cursor.copy(COPY.encode()) as copy:
            for row in _rows(made, log, places):
                copy.write_row(row)
        caught_up(connection, settings)


def remove_due(settings: Settings) -> None:
    """Delete the rows that are due, as the sink does when it comes to the tombstones of their export."""
    with connection_to(settings) as connection:
        connection.execute("delete from wait where wait_expiration_time < now()")


def caught_up(connection: psycopg.Connection[TupleRow], settings: Settings) -> None:
    """Write down that a sink has read the log to its end."""
    _write_positions(connection, settings, from_start=False)


def start_over(connection: psycopg.Connection[TupleRow], settings: Settings) -> None:
    """Write down that a sink has been here and read nothing: the whole log is what it has to make up for."""
    _write_positions(connection, settings, from_start=True)


def tidy(connection: psycopg.Connection[Any]) -> None:
    """Leave nothing behind that Postgres would do later by itself, in the middle of a measurement."""
    connection.execute("vacuum (analyze) wait, dead_letter, late_outcome")
    connection.execute("checkpoint")


def _write_positions(connection: psycopg.Connection[TupleRow], settings: Settings, *, from_start: bool) -> None:
    client, wait = admin(settings.kafka), settings.wait
    identity = describe_wait_topic(client, wait.topic, wait.partitions)
    now = postgres_now(connection)
    ends = end_offsets(client, wait.topic, range(wait.partitions), "read_uncommitted")
    positions = {
        TopicPartition(wait.topic, partition): Position(0 if from_start else end, now)
        for partition, end in ends.items()
    }
    forget_progress(connection, wait.topic)
    begin_progress(connection, identity, positions)


def _rows(made: Registrations, log: WaitLog, places: Iterable[tuple[int, int, int]]) -> Iterator[tuple[object, ...]]:
    expires_at = EPOCH + timedelta(milliseconds=made.expires_at_ms)
    for index, wait_partition, wait_offset in places:
        original = made.original(index)
        yield (
            made.wait_id(index),
            original.topic,
            original.partition,
            original.offset,
            original.key,
            EPOCH + timedelta(milliseconds=original.timestamp_ms),
            original.timestamp_ms,
            original.timestamp_type,
            encode_headers_json(original.headers).decode(),
            expires_at,
            original.value,
            GROUP,
            INSTANCE,
            1,
            log.dead_letter_topic,
            "dlq",
            3,
            log.topic,
            wait_partition,
            wait_offset,
        )
