"""Applies batches to Postgres, each in one transaction with its positions, and keeps idle positions fresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from sink.apply.staging import Staging
from sink.position import LogEnds, Position, Positions, TopicPartition, advanced, refreshed, require_fresh
from sink.progress import Connection, Written, advance_progress
from sink.read.record_columns import OFFSET, PARTITION, TIME_MS, TOPIC


class Writer(Protocol):
    """What one kind of topic does with a batch."""

    def write(self, connection: Connection, batch: pa.Table, whole_from: dict[TopicPartition, int]) -> Written:
        """Write it within the caller's transaction, and raise nothing for bad data; an error rolls all of it back."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One committed batch, or one refreshed set of idle positions (``written`` None)."""

    positions: Mapping[TopicPartition, Position]
    ends: LogEnds
    records: int
    written: Written | None


class Applier:
    """Owns the positions of one topic and the connection that moves them.

    Args:
        connection: in autocommit.
        writer: writes the topic's batches.
        positions: those in ``sink_progress``.
        list_ends: checks that the topic is the same, reads Postgres' clock and then the high watermarks.
        delete_retention_ms: bounds the positions' age (None: no bound, nothing is compacted).
        whole_from: see `sink.apply.wait_writer.WaitWriter.stage`.
    """

    def __init__(
        self,
        connection: Connection,
        writer: Writer,
        positions: Positions,
        list_ends: Callable[[], LogEnds],
        *,
        delete_retention_ms: int | None,
        whole_from: dict[TopicPartition, int],
    ) -> None:
        self._connection = connection
        self._writer = writer
        self.positions: Positions = dict(positions)
        self._list_ends = list_ends
        self._delete_retention_ms = delete_retention_ms
        self._whole_from = whole_from
        self._staging = Staging(connection)

    def apply(self, batch: pa.Table, batch_ends: Mapping[TopicPartition, int]) -> Applied:
        """Write a batch that ends at ``batch_ends`` and move the positions there, all or nothing.

        Raises `FencedError` when another sink moved them, `PositionExpired` when tombstones may be gone,
        ConfigurationError when a topic isn't the one it was, psycopg.Error when Postgres went away (then the outcome
        of the commit is unknown: read the positions again).
        """
        ends = self._checked_ends()
        append_times = last_append_times(batch)
        new = {
            name: advanced(position, batch_ends.get(name), append_times.get(name), ends.ends[name], ends.listed_at)
            for name, position in self.positions.items()
        }
        with self._connection.transaction():
            advance_progress(self._connection, self.positions, new)
            written = self._writer.write(self._connection, batch, self._whole_from)
        self.positions = new
        return Applied(new, ends, batch.num_rows, written)

    def refresh(self) -> Applied:
        """Write down that idle positions are still the log's ends; errors as `apply`.

        Due by time, between two batches of a busy stream as well: so the staged tables are frozen here.
        """
        self._staging.freeze_when_due()
        ends = self._checked_ends()
        new = refreshed(self.positions, ends)
        with self._connection.transaction():
            advance_progress(self._connection, self.positions, new)
        self.positions = new
        return Applied(new, ends, 0, None)

    def _checked_ends(self) -> LogEnds:
        ends = self._list_ends()
        if self._delete_retention_ms is not None:
            require_fresh(self.positions, ends, self._delete_retention_ms)
        return ends


def last_append_times(batch: pa.Table) -> dict[TopicPartition, int]:
    """Return the time (ms since the epoch) of the last record of each partition in a batch."""
    latest = batch.group_by([TOPIC, PARTITION]).aggregate([(OFFSET, "max")])
    last = batch.select([TOPIC, PARTITION, OFFSET, TIME_MS]).join(
        latest, [TOPIC, PARTITION, OFFSET], [TOPIC, PARTITION, f"{OFFSET}_max"], join_type="inner"
    )
    return {TopicPartition(row[TOPIC], row[PARTITION]): row[TIME_MS] for row in last.to_pylist()}
