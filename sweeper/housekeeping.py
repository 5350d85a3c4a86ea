"""The sweeper's writes to Postgres: a row per sweep in the table `sweep`, and the removal of old rows."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from sweeper.due import QUERIES
from sweeper.result import Sweep
from wait_registry.settings.topics import DAY_MS
from wait_registry.settings.tree import Settings

# A copy of the operations topic. A dead letter that a Connect sink reads again must find its mark.
MARKS: Final = ("dead_letter_mark", "operation", "operator_event")
TABLES: Final = ("dead_letter", "quarantine", "late_outcome", *MARKS, "sweep")
ROWS_AT_ONCE: Final = 10_000


def record_sweep(connection: psycopg.Connection[TupleRow], sweep: Sweep, instance: str) -> None:
    """Insert a sweep and the name of its process into the table `sweep`; the column of what was skipped has its reason.

    Raises:
        psycopg.Error: Postgres is unavailable; the sweep itself is not affected.
    """
    skipped = sweep.skipped_as_json() or ([{"reason": sweep.reason}] if sweep.reason else [])
    connection.execute(
        QUERIES["record_sweep"],
        {
            "wait_topic": sweep.wait_topic,
            "started_at": sweep.started_at,
            "duration_s": sweep.duration_s,
            "due": sweep.due,
            "counts": Jsonb(sweep.counts_as_json()),
            "skipped": Jsonb(skipped),
            "result": sweep.result.value,
            "instance": instance,
        },
    )


def marks_days(settings: Settings) -> int | None:
    """Return how long marks and jobs are kept: as long as the operations topic keeps them; None if it deletes none."""
    if settings.operations.retention_ms < 0:
        return None
    return max(settings.sweeper.retention_days, settings.operations.retention_ms // DAY_MS + 1)


def purge(connection: psycopg.Connection[TupleRow], retention_days: int, days_of_marks: int | None) -> dict[str, int]:
    """Delete rows older than the retention (by Postgres' clock), at most `ROWS_AT_ONCE` per table.

    Args:
        connection: in autocommit, so that each table's locks are short.
        retention_days: age of the rows.
        days_of_marks: age of the rows of `MARKS`; None deletes none of them.

    Returns:
        Rows deleted, by table.

    Raises:
        psycopg.Error: Postgres is unavailable; retry.
    """
    days = dict.fromkeys(TABLES, retention_days) | dict.fromkeys(MARKS, days_of_marks)
    return {
        table: connection.execute(QUERIES[f"purge_{table}"], {"days": days[table], "limit": ROWS_AT_ONCE}).rowcount
        for table in TABLES
    }
