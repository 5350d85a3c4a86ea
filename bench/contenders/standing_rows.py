"""Rows that Postgres makes by itself: registrations that stand, registrations that are due, dead letters of weeks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.product import connection_to
from bench.contenders.wait_log import CUSTOMERS, GROUP, INPUT_PARTITIONS, INPUT_TOPIC
from bench.harness.row import Bench
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import end_offsets
from wait_registry.settings.root import Settings

# {deliveries} are the columns of the delivery's number and of the most deliveries, by the schema's own names.
WAITS: Final = f"""
insert into wait (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp,
    original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group,
    instance, dead_letter_topic, expiry_policy, wait_topic, wait_partition, wait_offset, {{deliveries}})
select
    '00000000-0000-8000-%(variant)s-' || lpad(to_hex(i), 12, '0'), '{INPUT_TOPIC}', i %% {INPUT_PARTITIONS},
    i / {INPUT_PARTITIONS}, convert_to('customer-' || i * 7919 %% {CUSTOMERS}, 'UTF8'), now(),
    (extract(epoch from now()) * 1000)::bigint, 'create', '[["tenant", "YWNtZQ=="]]',
    now() + make_interval(secs => %(expires_in_s)s + i / 1000.0), convert_to(repeat(md5(i::text), 6), 'UTF8'),
    '{GROUP}', 'host-' || i %% 16, %(topic)s || '.dlq', 'dlq', %(topic)s, i %% %(partitions)s,
    %(stand)s * (i / %(partitions)s), 1, 3
from generate_series(%(first)s::bigint, %(last)s::bigint) as i
"""
STANDING: Final = "8000"
DUE: Final = "9000"
DAY_S: Final = 86_400.0
# Every second one expired, and every tenth of those was finished late. Two per second until eight days ago: two million
# take less than the retention of 30 days, and none is within the span that an incident query asks for. Their topic was
# recreated since: the sink doesn't ask for them.
AGE: Final = "now() - interval '8 days' - make_interval(secs => (%(letters)s - i) / 2.0)"
LETTER_ID: Final = "'00000000-0000-8000-a000-' || lpad(to_hex(i), 12, '0')"
LETTERS: Final = f"""
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, reason, error_class, error_message, error_stacktrace,
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_timestamp,
    original_timestamp_ms, original_timestamp_type, consumer_group, instance, wait_partition, wait_offset, key, headers,
    body, finished_late, finished_outcome, finished_time, created_at)
select
    %(topic)s || '.dlq@before', i %% {INPUT_PARTITIONS}, i / {INPUT_PARTITIONS}, at,
    case when expired then 'expired' else 'failed' end,
    case when not expired then 'shop.RefusedError' end,
    case when not expired then 'the shop refuses order ' || i end,
    case when not expired then repeat('  File "/srv/shop/orders.py", line 17, in handle' || E'\\n', 8) end,
    {LETTER_ID}, '{INPUT_TOPIC}', i %% {INPUT_PARTITIONS}, (%(rows)s + i) / {INPUT_PARTITIONS}, at,
    (extract(epoch from at) * 1000)::bigint, 'create', '{GROUP}', 'host-' || i %% 16, i %% %(partitions)s,
    i / %(partitions)s, convert_to('customer-' || i * 7919 %% {CUSTOMERS}, 'UTF8'), '[["tenant", "YWNtZQ=="]]',
    convert_to(repeat(md5(i::text), 6), 'UTF8'), late, case when late then 'done' end, case when late then at end, at
from
    generate_series(1, %(letters)s::bigint) as i,
    lateral (select {AGE}, i %% 2 = 0, i %% 20 = 0) as made (at, expired, late)
"""
LATE: Final = f"""
insert into late_outcome (
    wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset, outcome_time, created_at)
select {LETTER_ID}, 'done', %(topic)s || '@before', i %% %(partitions)s, i / %(partitions)s, at, at
from generate_series(20, %(letters)s::bigint, 20) as i, lateral (select {AGE}) as made (at)
"""
WAITS_PER_DEAD_LETTER: Final = 5
INDEXES: Final = """
select indexname, indexdef from pg_indexes
where schemaname = %s and tablename = any(%s) and indexname <> tablename || '_pkey'
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


def stand(bench: Bench, settings: Settings, rows: int, *, dead_letters: bool = False) -> None:
    """Fill an empty `wait` with registrations that aren't due, and leave nothing for autovacuum to do.

    With `dead_letters` a fifth as many rows of `dead_letter` stand beside them, and their `late_outcome`.
    """
    began = time.monotonic()
    with connection_to(settings) as connection:
        with _indexed_afterwards(connection, settings, "wait", "dead_letter", "late_outcome"):
            _insert(connection, settings, STANDING, range(1, rows + 1), DAY_S)
            if dead_letters:
                values = {"topic": settings.wait.topic, "partitions": settings.wait.partitions, "rows": rows}
                for query in (LETTERS, LATE):
                    connection.execute(query.encode(), {**values, "letters": rows // WAITS_PER_DEAD_LETTER})
        tidy(connection)
    bench.say(f"{rows} rows stand in {settings.postgres.schema_name} after {time.monotonic() - began:.0f} s")


def register_due(settings: Settings, indexes: range) -> None:
    """Insert registrations whose time is up, and write down that the sink is at the log's end, in one transaction.

    Their wait records aren't in the log, which nothing reads here: their offset is that of another one's, far behind.
    """
    with connection_to(settings) as connection, connection.transaction():
        _insert(connection, settings, DUE, indexes, -3600.0 - indexes.stop / 1000)
        _write_positions(connection, settings, from_start=False)


def remove_due(settings: Settings) -> None:
    """Delete the rows that are due, as the sink does when it reads the tombstones of their export."""
    with connection_to(settings) as connection:
        connection.execute("delete from wait where wait_expiration_time < now()")


def caught_up(settings: Settings) -> None:
    """Write down that a sink has read the log to its end."""
    with connection_to(settings) as connection:
        _write_positions(connection, settings, from_start=False)


def start_over(settings: Settings) -> None:
    """Write down that a sink has been here and read nothing: the whole log is what it has to make up for."""
    with connection_to(settings) as connection:
        _write_positions(connection, settings, from_start=True)


def tidy(connection: Connection) -> None:
    """Leave nothing that Postgres would do later by itself, in the middle of a measurement."""
    connection.execute("vacuum (analyze) wait, dead_letter, late_outcome")
    connection.execute("checkpoint")


def _insert(connection: Connection, settings: Settings, variant: str, indexes: range, expires_in_s: float) -> None:
    row = connection.execute(COLUMNS).fetchone()
    assert row is not None
    values = {
        "first": indexes.start,
        "last": indexes.stop - 1,
        "expires_in_s": expires_in_s,
        "topic": settings.wait.topic,
        "partitions": settings.wait.partitions,
        "stand": int(variant == STANDING),
    }
    query = WAITS.replace("%(variant)s", variant).replace("{deliveries}", row[0])
    connection.execute(query.encode(), values)


def _write_positions(connection: Connection, settings: Settings, *, from_start: bool) -> None:
    client, topic = admin(settings.kafka), settings.wait.topic
    topic_id = describe_topic(client, topic).topic_id
    ends = end_offsets(client, topic, range(settings.wait.partitions), "read_uncommitted")
    rows = [(topic, topic_id, partition, 0 if from_start else end) for partition, end in ends.items()]
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(PROGRESS, rows)


@contextmanager
def _indexed_afterwards(connection: Connection, settings: Settings, *tables: str) -> Iterator[None]:
    """Make the tables' indexes when the block is over: as dense as they get, in a fraction of the time."""
    indexes = connection.execute(INDEXES.encode(), (settings.postgres.schema_name, list(tables))).fetchall()
    for name, _ in indexes:
        connection.execute(f"drop index {name}".encode())
    yield
    for _, definition in indexes:
        connection.execute(definition.encode())
