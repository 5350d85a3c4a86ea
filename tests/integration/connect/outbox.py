"""Rows of `wait` and what the outbox makes of them, by SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

INSERT = """
    insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition,
                      wait_offset)
    values (%s, 'orders', now() + %s, %s, %s, %s)
"""
DEAD_LETTER = """
    insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid, wait_partition, wait_offset)
    values ('dlq', 0, %s, %s, %s, %s, %s)
"""
EXPORTED = """
    insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid, wait_partition, wait_offset)
    select 'dlq', 0, id, 'expired', wait_expiration_uuid, wait_partition, wait_offset from expired_outbox
"""
SWEPT = """
insert into sweep (wait_topic, started_at, duration_s, due, skipped, result, instance)
values (%s, clock_timestamp() - make_interval(secs => %s), 1, 0, '[]', 'done', 'host-1') returning 1
"""
FILLED = """
insert into expired_outbox (
    wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset, created_at
) values ('an id', 'orders', now(), %s, 0, %s, clock_timestamp() - make_interval(secs => %s)) returning 1
"""
POSITION = "insert into sink_progress values ('wait', 'id', %s, 0, now() + %s, now())"
FILL = "select fill_expired_outbox('wait', 5, %s, %s, %s, %s)"

Connection = psycopg.Connection[Any]


def register(
    connection: Connection, wait_id: str, partition: int, offset: int, expires_in_s: float = -60, topic: str = "wait"
) -> None:
    """Insert a registration, expired a minute ago unless told otherwise."""
    connection.execute(INSERT, (wait_id, timedelta(seconds=expires_in_s), topic, partition, offset))


def fill(
    connection: Connection, max_rows: int = 1000, settle_s: float = 0, letters: str = "dlq", max_bytes: int = 67_108_864
) -> int:
    """Call the function with a skew allowance of five seconds; a row need not stand for long unless told otherwise."""
    row = connection.execute(FILL, (max_rows, settle_s, letters, max_bytes)).fetchone()
    assert row is not None
    return int(row[0])


def places(connection: Connection, table: str = "expired_outbox") -> list[tuple[str, int, int]]:
    """Return ID and place of each row in a table of the outbox, in the order of its numbers."""
    found = connection.execute(
        f"select wait_expiration_uuid, wait_partition, wait_offset from {table} order by id".encode()
    )
    return [(wait_id, partition, offset) for wait_id, partition, offset in found.fetchall()]
