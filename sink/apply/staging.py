"""The staged tables of one connection: filled by COPY, frozen from time to time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

from psycopg import sql

from sink.condense.copy_bytes import CopyRows, copy_stream
from sink.condense.quarantined import Quarantined
from sink.progress import QUERIES, Connection

FREEZE_EVERY_S = 3600.0


class Staging:
    """The staged tables of one connection.

    Autovacuum can't reach another session's temporary tables. Left alone, those of a sink that runs undisturbed for
    weeks keep Postgres' oldest transaction ID where it was when they were created, until it stops giving out new ones,
    in every database of the server.
    """

    def __init__(self, connection: Connection) -> None:
        """Create the tables, over a connection in autocommit."""
        self._connection = connection
        connection.execute(QUERIES["stage"])
        self._frozen_at = monotonic()

    def freeze_when_due(self) -> None:
        """Freeze the tables if that is due; never within a transaction. Errors are psycopg's."""
        now = monotonic()
        if now - self._frozen_at >= FREEZE_EVERY_S:
            self._connection.execute(QUERIES["freeze_staged"])
            self._frozen_at = now


def copy_rows(connection: Connection, table: str, types: Mapping[str, str], rows: Iterable[tuple[Any, ...]]) -> int:
    """Copy rows into a table, one at a time, and return their number; ``types`` are those of the columns, by name."""
    with connection.cursor() as cursor:
        with cursor.copy(_statement(table, types)) as copy:
            copy.set_types(list(types.values()))
            for row in rows:
                copy.write_row(row)
        return cursor.rowcount


def copy_condensed(connection: Connection, table: str, columns: Iterable[str], rows: CopyRows) -> None:
    """Copy rows that are bytes for COPY already."""
    if rows.count == 0:
        return
    with connection.cursor() as cursor, cursor.copy(_statement(table, columns)) as copy:
        for data in copy_stream(rows.portions):
            copy.write(data)


def insert_quarantined(connection: Connection, records: list[Quarantined]) -> None:
    """Insert quarantined records; those that are there already stay as they are."""
    with connection.cursor() as cursor:
        cursor.executemany(QUERIES["quarantine"], records)


def _statement(table: str, columns: Iterable[str]) -> sql.Composed:
    return sql.SQL("copy {} ({}) from stdin (format binary)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
