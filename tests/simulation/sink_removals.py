"""Take one rule out of the real sink, rebuild or sweeper: each function removes the rule after which it is named.

Where a mutant of `tests.mutants` removes the same rule, it is called.
"""

from __future__ import annotations

from typing import Any

from pytest import MonkeyPatch

from sink.apply import applier
from sink.apply.applier import Applier
from sink.position import advanced
from sink.progress import advance_progress, read_progress
from sink.read import kafka_reader
from sink.rebuild import replacement
from sink.topic_sync import TopicSync
from sweeper.export import DueRows
from tests.mutants import sink, sweeper
from tests.mutants.mutant import changes_query
from tests.simulation.replay import ask


def all_tombstones_of_a_batch(patch: MonkeyPatch) -> None:
    """Drop a tombstone whose wait record is in the same batch."""
    sink.drops_tombstones_with_their_waits(patch)


def position_with_its_rows(patch: MonkeyPatch) -> None:
    """Commit the position, then the rows."""
    sink.commits_positions_before_rows(patch)


def rows_with_their_position(patch: MonkeyPatch) -> None:
    """Commit the rows, then the position."""
    moves: list[tuple[Any, ...]] = []

    class RowsFirst:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def write(self, connection: Any, *batch: Any) -> Any:
            written = self._writer.write(connection, *batch)
            connection.execute("commit; begin")
            advance_progress(*moves.pop())
            return written

    apply = Applier.apply

    def changed(self: Applier, *batch: Any) -> Any:
        moves.clear()
        self._writer = RowsFirst(self._writer)
        with patch.context() as inner:
            inner.setattr(applier, "advance_progress", lambda *move: moves.append(move))
            return apply(self, *batch)

    patch.setattr(Applier, "apply", changed)


def compare_and_set(patch: MonkeyPatch) -> None:
    """Move a position wherever it is."""
    sink.moves_positions_whatever_they_are(patch)


def starts_at_progress(patch: MonkeyPatch) -> None:
    """Start reading at the offset that the sink has mirrored to its consumer group."""
    start = TopicSync.__init__

    def changed(self: TopicSync, *arguments: Any) -> None:
        start(self, *arguments)
        self._read_to = dict.fromkeys(self._read_to, ask("mirror"))

    patch.setattr(TopicSync, "__init__", changed)


def sink_reads_committed(patch: MonkeyPatch) -> None:
    """Read what transactions that were aborted have written."""
    options = kafka_reader.source_options
    uncommitted = {"kafka.isolation.level": "read_uncommitted"}
    patch.setattr(kafka_reader, "source_options", lambda kafka: options(kafka) | uncommitted)


def sink_checks_the_age(patch: MonkeyPatch) -> None:
    """Continue from a position of any age."""
    sink.trusts_an_old_position(patch)


def sweeper_checks_the_age(patch: MonkeyPatch) -> None:
    """Sweep by a position of any age."""
    sweeper.trusts_a_position_of_any_age(patch)


def age_is_that_of_the_next_record(patch: MonkeyPatch) -> None:
    """Date a position by its reading, also before the log's end."""
    patch.setattr(applier, "advanced", lambda at, to, last_ms, end, listed: advanced(at, to, last_ms, 0, listed))


def age_is_checked_after_the_tail(patch: MonkeyPatch) -> None:
    """Ask for the time before the tail is read."""
    read_on = DueRows.read_on

    def changed(self: DueRows) -> None:
        early = self._tables.clock()
        self._tables.clock = lambda: early  # type: ignore[method-assign]
        read_on(self)
        del self._tables.clock

    patch.setattr(DueRows, "read_on", changed)


def rebuild_checks_its_age(patch: MonkeyPatch) -> None:
    """Replace the rows however long the reading took."""
    sink.trusts_a_slow_rebuild(patch)


def rebuild_moves_the_position(patch: MonkeyPatch) -> None:
    """Replace the rows, and leave position and time as they are."""
    patch.setattr(replacement, "advance_progress", lambda *_: None)


def upsert_guard(patch: MonkeyPatch) -> None:
    """Replace a row whatever its offset is."""
    changes_query(patch, "sink", "upsert_waits", "held.wait_offset < excluded.wait_offset", "true")


def delete_guard(patch: MonkeyPatch) -> None:
    """Delete a row whatever its offset is."""
    sink.deletes_newer_rows(patch)


def rebuild_compares(patch: MonkeyPatch) -> None:
    """Replace the rows although the position has moved since the rebuild began."""

    def changed(connection: Any, expected: Any, new: Any) -> None:
        _, current = read_progress(connection, next(iter(new)).topic)
        advance_progress(connection, current, new)

    patch.setattr(replacement, "advance_progress", changed)
