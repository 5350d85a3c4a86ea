"""The tables of one partition as one snapshot of Postgres: the sink's progress and the due rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import TupleRow, dict_row

from sweeper.due import QUERIES, DueKey, DueRow, due_row
from sweeper.export_decision import Obstacle, Unsendable, unsendable
from wait_registry.errors import DataError
from wait_registry.postgres.connection import connect, lift_time_limits
from wait_registry.postgres.queries import Queries
from wait_registry.settings.tree import Settings

# A server in recovery, or one that an operator has made read-only, accepts writes again later, or another one does.
UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the sink had read this partition when the snapshot was taken."""

    topic_id: str
    next_offset: int
    position_time: datetime


class PartitionSnapshot:
    """One repeatable-read transaction of a partition: progress first, then the due rows by a server-side cursor."""

    def __init__(self, settings: Settings, partition: int) -> None:
        """Open the snapshot.

        Raises:
            PostgresUnavailable, psycopg.Error: Postgres is unavailable; retry.
        """
        wait = settings.wait
        self._question = {"topic": wait.topic, "partition": partition, "skew_s": wait.skew_allowance_s}
        self._pending: deque[DueKey] = deque()
        self._connection = connect(settings.postgres, application_name=f"waitreg-sweeper-{partition}")
        try:
            # The snapshot lasts as long as its export, and idles while Kafka is read and written.
            lift_time_limits(self._connection)
            self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
            progress = self.ask(QUERIES, "progress")
            self.progress = Progress(*progress[0]) if progress else None
            self._cursor = self._connection.cursor(name="due")
            self._cursor.execute(QUERIES["due_keys"], self._question)
        except BaseException:
            self._connection.close()
            raise

    def ask(self, queries: Queries, name: str, **parameters: Any) -> list[TupleRow]:
        """Return what a query about this partition finds in this snapshot.

        Args:
            queries: the file that has it.
            name: of the query.
            parameters: besides topic, partition and skew_s.
        """
        with self._connection.cursor() as cursor:
            return cursor.execute(queries[name], {**self._question, **parameters}).fetchall()

    def clock(self) -> datetime:
        """Return the time of Postgres' clock now, not that of the snapshot."""
        now: datetime = self.ask(QUERIES, "clock")[0][0]
        return now

    def next_keys(self, max_rows: int, max_bytes: int) -> list[DueKey]:
        """Return the next due rows' keys, earliest expiry first; none after the last row.

        Args:
            max_rows: number of rows, at most.
            max_bytes: of their keys, values and headers together, at most; a single row may be larger.
        """
        keys: list[DueKey] = []
        size = 0
        while len(keys) < max_rows:
            if not self._pending:
                self._pending.extend(DueKey(*row) for row in self._cursor.fetchmany(max_rows))
            if not self._pending or (keys and size + self._pending[0].size > max_bytes):
                break
            keys.append(self._pending.popleft())
            size += keys[-1].size
        return keys

    def rows(self, keys: Sequence[DueKey]) -> tuple[list[DueRow], list[Unsendable]]:
        """Return the rows of these keys, and those that can't be read."""
        rows: list[DueRow] = []
        unreadable: list[Unsendable] = []
        with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            for columns in cursor.execute(QUERIES["due_rows"], {"ids": [key.wait_id for key in keys]}):
                try:
                    rows.append(due_row(columns))
                except DataError as error:
                    wait_id, topic = columns["wait_expiration_uuid"], columns["original_topic"]
                    partition, offset = columns["original_partition"], columns["original_offset"]
                    unreadable.append(unsendable(wait_id, topic, partition, offset, Obstacle.UNREADABLE, str(error)))
        return rows, unreadable

    def close(self) -> None:
        """End the snapshot."""
        self._connection.close()
