"""What a sink had Postgres do to the table `wait`, as Postgres counted it."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from bench.harness.row import WrongResultError

WRITES: Final = """
select coalesce(sum(n_tup_ins), 0), coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_del), 0)
from pg_stat_user_tables where schemaname = %s and relname = 'wait'
"""
WAL_BYTES: Final = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
SESSIONS: Final = "select count(*) from pg_stat_activity where application_name = %s"
OPEN_ROWS: Final = "select count(*) from wait"
POLL_S: Final = 0.05
STATISTICS_S: Final = 10.0


class WrongView(WrongResultError):
    """The table isn't what the log says: the figures would be worth nothing."""


class TableWrites(NamedTuple):
    """Rows written so far, and bytes of all that Postgres logged."""

    inserted: int
    updated: int
    deleted: int
    wal_bytes: int


def table_writes(connection: psycopg.Connection[TupleRow], schema: str) -> TableWrites:
    """Return what has been counted; the work of a session may be missing until it has ended."""
    row = connection.execute(WRITES, (schema,)).fetchone()
    assert row is not None  # sums without a group always have one
    return TableWrites(int(row[0]), int(row[1]), int(row[2]), _count(connection, WAL_BYTES))


def figures_of(before: TableWrites, after: TableWrites, waits: float) -> dict[str, float]:
    """Return the figures of what was written in between; pure.

    `written_share` is rows inserted or updated by the number of waits, as for our sink.
    """
    inserted, updated, deleted, wal_bytes = (now - then for now, then in zip(after, before, strict=True))
    return {
        "rows_inserted": inserted,
        "rows_updated": updated,
        "rows_deleted": deleted,
        "written_share": (inserted + updated) / waits,
        "wal_bytes_per_wait": wal_bytes / waits,
    }


def await_sessions_end(
    connection: psycopg.Connection[TupleRow], application: str, deadline_s: float = STATISTICS_S
) -> None:
    """Wait until the sessions of an application have ended: Postgres counts then all that they have done.

    Raises:
        TimeoutError: one is still there after `deadline_s` seconds.
    """
    deadline = time.monotonic() + deadline_s
    while _count(connection, SESSIONS, application):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the sessions of {application} didn't end in {deadline_s:g} s")
        time.sleep(POLL_S)


def require_open_rows(connection: psycopg.Connection[TupleRow], expected: int) -> None:
    """Raise WrongView unless the table holds so many rows."""
    found = _count(connection, OPEN_ROWS)
    if found != expected:
        raise WrongView(f"{found} rows are left in wait, the log says {expected}")


def _count(connection: psycopg.Connection[TupleRow], query: str, *parameters: object) -> int:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return 0 if row is None else int(row[0])
