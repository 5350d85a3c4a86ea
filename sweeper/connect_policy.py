"""A sweeper alongside Kafka Connect: with a Connect sink it trusts the log alone; with a source it doesn't start.

The tables that a Connect sink keeps are exact nowhere: its offsets are ahead of a table that was restored, and a task
that Connect considers dead may write old rows. So the tail starts at the first due row's own wait record, and only rows
that the log shows as the last entry of their ID are exported (docs/decisions/0010-beside-a-connect-sink.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from sweeper.health import longest_silence_s
from sweeper.snapshot import PartitionSnapshot
from sweeper.tables_policy import OUR_SINK, RecordedTopic, Scope, Start, TablesPolicy
from sweeper.tail import Position, Tail, TailTooLong
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.queries import Queries
from wait_registry.records.tombstone import oldest_allowed
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

QUERIES = Queries("connect")


def tables_policy(settings: Settings) -> TablesPolicy:
    """Return what a sweeper may assume of the tables, by the sink that keeps them (sink.kind)."""
    return LogPolicy() if settings.sink.kind is SinkKind.CONNECT else OUR_SINK


class TailOfIds(Tail):
    """The last entry of the due rows' wait IDs; `old_end` is the offset after the last old record that was added."""

    def __init__(self, start: int, max_ids: int, wait_ids: Collection[str], old_before_ms: int = 0) -> None:
        """Start at an offset.

        Args:
            start: every due row's wait record is at or above it, if the log still has it.
            max_ids: IDs held, at most.
            wait_ids: the only ones that are held.
            old_before_ms: broker time, epoch ms, before which a record is old.

        Raises:
            TailTooLong: there are more of them.
        """
        super().__init__(start, max_ids)
        if len(wait_ids) > max_ids:
            raise TailTooLong(f"more than {max_ids} rows are due (sweeper.max_tail_records): raise it for this sweep")
        self._wait_ids = frozenset(wait_id.encode() for wait_id in wait_ids)
        self._old_before_ms = old_before_ms
        self.old_end = start

    def add(self, key: bytes | None, offset: int, timestamp_ms: int = 0) -> None:
        """Add a record; call in the order of offsets."""
        if timestamp_ms < self._old_before_ms:
            self.old_end = offset + 1
        if key in self._wait_ids:
            super().add(key, offset, timestamp_ms)

    def empty(self) -> TailOfIds:
        """Return an empty tail of the same start, for the same IDs."""
        return TailOfIds(self.start, self._max_ids, [key.decode() for key in self._wait_ids])

    def confirm(self, again: TailOfIds, end: int) -> None:
        """Forget entries below an offset that a later reading doesn't find: compaction was removing them.

        Args:
            again: read after this one had come to its end, from the same start.
            end: how far it was read.
        """
        gone = [key for key, last in self._last.items() if last < end and again._last.get(key) != last]
        for key in gone:
            del self._last[key]


@dataclass(frozen=True, slots=True)
class FirstDueRow(Start):
    """The tail starts at the first due row's own wait record."""

    tail: TailOfIds

    def confirm(self, reader: TailReader) -> None:
        """Take a second look at old wait records; errors as `TailReader.read_on`.

        While the tail is read, compaction may remove a wait record behind the reader and its tombstone before it, if
        the tombstone is old enough. A wait record that is still there after the end was reached had none to lose, since
        compaction never removes the tombstone first; a record younger than half of delete.retention.ms can't lose one.
        """
        end = self.tail.old_end
        if end > self.tail.start:
            again = self.tail.empty()
            reader.read_again(again, end)
            self.tail.confirm(again, end)


class LogPolicy(TablesPolicy):
    """A Connect sink keeps the tables: they only name candidates, the log decides."""

    def recorded_topics(self, connection: psycopg.Connection[TupleRow], topic: str) -> list[RecordedTopic]:
        """Return none: what an earlier sink recorded doesn't describe these tables."""
        return []

    def start(self, tables: PartitionSnapshot, scope: Scope, partition: int, log_end: Callable[[], int]) -> FirstDueRow:
        """Start at the first due row's wait record, or at the end of the log when no row is due.

        Raises:
            TailTooLong: more rows are due than the tail may hold.
        """
        now, max_ids = tables.clock(), scope.settings.sweeper.max_tail_records
        old_before_ms = int((now - oldest_allowed(scope.topic.delete_retention_ms)).timestamp() * 1000)
        due: dict[str, int] = dict(tables.ask(QUERIES, "due_places", limit=max_ids + 1))
        position = Position(min(due.values()) if due else log_end(), now)
        return FirstDueRow(position, TailOfIds(position.next_offset, max_ids, due, old_before_ms))


def require_no_source_at_work(settings: Settings, connections: OpenConnections | None = None) -> None:
    """Refuse to start if a source connector exports from this schema, whatever sweeper.kind says.

    If Postgres can't answer (it is unavailable, or the outbox isn't readable), the setting alone counts.

    Args:
        settings: of the sweeper.
        connections: those of the service, to which this adds one.

    Raises:
        ConfigurationError: a source exports; the message says what to do.
    """
    # A source that has been removed is taken for a running one for this long.
    silent_most_s = longest_silence_s(settings.sweeper.interval_s)
    question = {"topic": settings.wait.topic, "silent_most_s": silent_most_s}
    seen = ""
    try:
        with (connections or OpenConnections()).open(settings.postgres, "waitreg-sweeper") as connection:
            if connection.execute(QUERIES["outbox_read"]).fetchone():
                seen = "reads expired_outbox"
            for (ago_s,) in connection.execute(QUERIES["outbox_filled"], question):
                seen = seen if ago_s is None else f"put a row into expired_outbox {ago_s:.0f} s ago"
    except psycopg.errors.InsufficientPrivilege:
        log.warning(
            "can't see whether a Kafka Connect source exports here, only sweeper.kind counts: grant select on "
            "expired_outbox to the sweeper's role (deploy/postgres/roles.sql)"
        )
    except (WaitRegistryError, psycopg.Error) as error:
        log.debug("can't see whether a source exports here: %s", error)
    if seen:
        raise ConfigurationError(
            f"a Kafka Connect source {seen}, and a sweeper would export every expired registration a second time. "
            "Don't start `waitreg sweeper`, and set sweeper.kind=connect. Or, to sweep instead, delete the connectors "
            "expired.source and expired.tombstones: a sweeper starts once expired_outbox has had no new row for "
            f"{silent_most_s:.0f} s"
        )
