"""Rows of `wait` and what the outbox makes of them, by SQL."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg

INSERT = """
    insert into wait (wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition,
                      wait_offset)
    values (%s, 'orders', now() + %s, 'wait', %s, %s)
"""
DEAD_LETTER = """
    insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid, wait_partition, wait_offset)
    values ('dlq', 0, %s, %s, %s, %s, %s)
"""
POSITION = "insert into sink_progress values ('wait', 'id', %s, 0, now() + %s, now())"
FILL = "select fill_expired_outbox('wait', 5, %s, %s, %s, %s)"

Connection = psycopg.Connection[Any]


def register(connection: Connection, wait_id: str, partition: int, offset: int, expires_in_s: float = -60) -> None:
    """Insert a registration, expired a minute ago unless told otherwise."""
    connection.execute(INSERT, (wait_id, timedelta(seconds=expires_in_s), partition, offset))


def fill(
    connection: Connection,
    max_rows: int = 1000,
    settle_s: float = 0,
    letters: str = "dlq",
    max_bytes: int = 67_108_864,
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


def ages(connection: Connection, table: str) -> list[datetime]:
    """Return when the rows of a table of the outbox were written, in the order of their numbers."""
    return [row[0] for row in connection.execute(f"select created_at from {table} order by id".encode()).fetchall()]
