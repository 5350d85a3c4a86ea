"""Retention: old rows of dead_letter, quarantine, late_outcome and sweep go, a bounded number at a time."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES

TABLES: Final = ("dead_letter", "quarantine", "late_outcome", "sweep")
ROWS_AT_ONCE: Final = 10_000


def purge(connection: psycopg.Connection[TupleRow], retention_days: int) -> dict[str, int]:
    """Delete rows older than the retention, at most `ROWS_AT_ONCE` a table; the next sweep goes on.

    Args:
        connection: in autocommit, so that each table's locks are short.
        retention_days: age by Postgres' clock.

    Returns:
        Rows deleted, by table.

    Raises:
        psycopg.Error: Postgres went away; retry.
    """
    bounds = {"days": retention_days, "limit": ROWS_AT_ONCE}
    return {table: connection.execute(QUERIES[f"purge_{table}"], bounds).rowcount for table in TABLES}
