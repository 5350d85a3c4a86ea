"""Mutants of the sink."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.mutants.mutant import changes_query, mutant

Patch = pytest.MonkeyPatch


@mutant("P1.12")
def loses_what_it_cannot_decode(patch: Patch) -> None:
    """A record that can't be decoded is skipped without a trace."""
    from sink.apply import wait_writer

    patch.setattr(wait_writer, "insert_quarantined", lambda connection, records: None)


@mutant("P1.13")
def overwrites_the_rows_of_a_lost_topic(patch: Patch) -> None:
    """A recreated dead letter topic counts from 0 again, and its rows replace the last copies of the old ones."""
    changes_query(patch, "sink", "rename_dead_letters", "where topic = %(topic)s", "where topic = %(topic)s and false")


@mutant("P3.8")
def starts_next_to_a_connect_sink(patch: Patch) -> None:
    """Rows that a Connect sink brings back are below the position of our sink, and are exported."""
    from sink import service

    patch.setattr(service, "require_no_second_sink", lambda *arguments: None)


@mutant("P3.11")
def dates_positions_by_their_reading(patch: Patch) -> None:
    """A position far behind the end of the log counts as fresh, so that its age is never refused."""
    from sink import position

    original = position.advanced
    patch.setattr(position, "advanced", lambda at, to, last_ms, end, listed: original(at, to, last_ms, to, listed))


@mutant("P3.13")
def drops_tombstones_with_their_waits(patch: Patch) -> None:
    """A tombstone whose wait record is in the same batch is dropped, although an earlier batch had that record too."""
    from sink.apply import compaction

    original = compaction._tombstones

    def tombstones(keyed: Any, packed: Any, groups: Any) -> Any:
        return original(keyed, packed, groups.filter(pc.equal(groups["tombstones_sum"], groups["packed_count"])))

    patch.setattr(compaction, "_tombstones", tombstones)


@mutant("P3.21")
def trusts_a_slow_rebuild(patch: Patch) -> None:
    """A rebuild that was frozen for longer than tombstones stay brings back what was settled meanwhile."""
    from sink.rebuild import replacement

    patch.setattr(replacement, "require_read_in_time", lambda *arguments: None)


@mutant("P4.12")
def moves_positions_whatever_they_are(patch: Patch) -> None:
    """A sink that was frozen writes old rows over new ones."""
    changes_query(patch, "sink", "advance", "and held.next_offset = step.expected", "")


@mutant("P4.13")
def marks_no_late_outcome(patch: Patch) -> None:
    """An `expired` dead letter whose record was finished after all isn't marked."""
    changes_query(patch, "sink", "mark_by_tombstones", "where exists (", "where false and exists (")


@mutant("P6.2")
def commits_positions_before_rows(patch: Patch) -> None:
    """A failure between position and rows skips a batch for good."""
    from sink.apply import applier
    from sink.progress import advance_progress

    def advance(connection: Any, *positions: Any) -> None:
        advance_progress(connection, *positions)
        connection.execute("commit; begin")

    patch.setattr(applier, "advance_progress", advance)


@mutant("P6.4")
def deletes_newer_rows(patch: Patch) -> None:
    """A tombstone deletes a registration that came after it."""
    changes_query(patch, "sink", "settle", "and held.wait_offset < staged.last_offset", "")


@mutant("P6.6")
def trusts_an_old_position(patch: Patch) -> None:
    """A sink that was away for too long continues, although compaction may have removed tombstones unread."""
    from sink.apply import applier

    patch.setattr(applier, "require_fresh", lambda *arguments: None)


@mutant("P6.7")
def has_no_standby(patch: Patch) -> None:
    """A second sink works at once, and the two end each other again and again."""
    from sink import advisory_lock

    patch.setattr(advisory_lock, "try_lock", lambda connection, key: True)


@mutant("P6.9")
def lets_staged_tables_grow_old(patch: Patch) -> None:
    """A sink that runs for weeks holds back the transaction IDs of the whole server."""
    from sink.apply.staging import Staging

    patch.setattr(Staging, "freeze_when_due", lambda self: None)


@mutant("P7.8")
def reads_small_tables_whole(patch: Patch) -> None:
    """Each lookup of a batch's thousands reads a small table to its end."""
    changes_query(patch, "sink", "prefer_probes", "set local random_page_cost = 0.1", "select 1")


@mutant("P7.9")
def shows_a_large_letter_as_empty(patch: Patch) -> None:
    """A dead letter that is too large for its table is a row without its value."""
    from sink.apply import dead_letter_writer

    patch.setattr(dead_letter_writer, "OMITTED_BYTES", "no such column")


@mutant("P8.18")
def is_ready_without_a_batch(patch: Patch) -> None:
    """A sink that has written nothing yet is ready."""
    from sink.metrics import TopicState
    from sink.progress import Written

    original = TopicState.committed

    def committed(self: TopicState, applied: Any) -> None:
        original(self, replace(applied, written=applied.written or Written("wait", 0, 0, 0, 0)))

    patch.setattr(TopicState, "committed", committed)
