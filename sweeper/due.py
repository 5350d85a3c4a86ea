"""What is due: one cheap question to Postgres, whose clock alone decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import TupleRow

from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings

QUERIES = Queries("sweeper")


@dataclass(frozen=True, slots=True)
class Due:
    """The wait topic's partitions that have rows due, how many rows, and since when the oldest is."""

    partitions: tuple[int, ...]
    rows: int
    oldest: datetime | None


def find_due(connection: psycopg.Connection[TupleRow], settings: Settings, partitions: int) -> Due:
    """Ask which partitions have rows whose time is up.

    Args:
        connection: in autocommit.
        settings: wait topic and skew allowance (a row is due that much after its expiry).
        partitions: how many the wait topic has.

    Raises:
        psycopg.Error: Postgres went away; retry.
    """
    question = {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s, "partitions": partitions}
    found = connection.execute(QUERIES["due_partitions"], question).fetchall()
    if not found:
        return Due((), 0, None)
    due = tuple(partition for partition, _ in found)
    counted = connection.execute(QUERIES["due_count"], {**question, "partitions": list(due)}).fetchone()
    return Due(due, counted[0] if counted else 0, min(expired for _, expired in found))
