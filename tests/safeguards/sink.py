"""Safeguards of the sink and the rebuild."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import pytest

from tests.safeguards.catalogue import NEVER_ENDS, NOTHING, Patch, safeguard

ADVANCE_PROGRESS = "sink.progress.advance_progress"
REPLACEMENT = "sink.rebuild.replacement"


@safeguard("P1.12", at="sink.apply.wait_writer.insert_quarantined")
def without_quarantine(*_):
    """A record that can't be decoded is skipped without a trace."""


@safeguard("P1.13")
def without_renamed_dead_letters(patch: Patch) -> None:
    """A recreated dead letter topic counts from 0 again, and its rows replace the last copies of the old ones."""
    patch.query("sink", "rename_dead_letters", "where topic = %(topic)s", "where topic = %(topic)s and false")


@safeguard("P3.13", at="sink.condense.compaction._tombstones", real=True, world=lambda w: w.sink())
def without_all_tombstones_of_a_batch(original, keyed, packed, groups):
    """A tombstone whose wait record is in the same batch is dropped, although an earlier batch had that record too."""
    alone = resolve_name("pyarrow.compute").equal(groups["tombstones_sum"], groups["packed_count"])
    return original(keyed, packed, groups.filter(alone))


@safeguard("P6.2", "P1", at="sink.apply.applier.advance_progress", real=True, world=lambda w: w.sink())
def without_rows_before_positions(original, connection, *positions):
    """A failure between position and rows skips a batch for good."""
    original(connection, *positions)
    connection.execute("commit; begin")


@safeguard("P6.2", "P3", at="sink.apply.applier.Applier.apply", world=lambda w: w.sinks())
def without_positions_with_their_rows(original, self, *batch):
    """The rows of a batch are committed before its position."""
    advance = resolve_name(ADVANCE_PROGRESS)
    moves: list[Any] = []
    writer = self._writer

    def rows_first(connection, *batch):
        written = writer.write(connection, *batch)
        connection.execute("commit; begin")
        advance(*moves.pop())
        return written

    self._writer = SimpleNamespace(write=rows_first)
    with pytest.MonkeyPatch.context() as inner:
        inner.setattr("sink.apply.applier.advance_progress", lambda *move: moves.append(move))
        return original(self, *batch)


@safeguard("P4.12", "P3", real=True, world=lambda w: w.sinks())
def without_compare_and_set(patch: Patch) -> None:
    """A sink that was frozen writes old rows over new ones."""
    patch.query("sink", "advance", "and held.next_offset = step.expected", "")


@safeguard("P6.4", NOTHING, real=True, world=lambda w: w.sinks())
def without_upsert_guard(patch: Patch) -> None:
    """A wait record replaces a newer row.

    Compare-and-set lets no batch be applied to tables that have passed it.
    """
    patch.query("sink", "upsert_waits", "held.wait_offset < excluded.wait_offset", "true")


@safeguard("P6.4", NOTHING, real=True, world=lambda w: w.sinks())
def without_delete_guard(patch: Patch) -> None:
    """A tombstone deletes a registration that came after it.

    Compare-and-set lets no batch be applied to tables that have passed it; deletes come before upserts.
    """
    patch.query("sink", "settle", "and held.wait_offset < staged.last_offset", "")


@safeguard("P4.13")
def without_marks_of_late_outcomes(patch: Patch) -> None:
    """An `expired` dead letter whose record was finished after all isn't marked."""
    patch.query("sink", "mark_by_tombstones", "and dead_letter.finished_outcome is null", "and false")


@safeguard("P7.9")
def without_kept_large_values(patch: Patch) -> None:
    """A dead letter that is too large for its table is a row without its value."""
    patch.replace("sink.apply.dead_letter_writer.OMITTED_BYTES", "no such column")


@safeguard("P6.9", at="sink.apply.staging.Staging.freeze_when_due")
def without_frozen_staging(*_):
    """A sink that runs for weeks holds back the transaction IDs of the whole server."""


@safeguard("P7.8")
def without_probes(patch: Patch) -> None:
    """Each lookup of a batch's thousands reads a small table to its end."""
    patch.query("sink", "prefer_probes", "set local random_page_cost = 0.1", "select 1")


@safeguard("P8.18", at="sink.health.TopicHealth.committed")
def without_readiness_after_a_batch(original, self, applied):
    """A sink that has written nothing yet is ready."""
    nothing = resolve_name("sink.progress.Written")("wait", 0, 0, 0, 0)
    original(self, replace(applied, written=applied.written or nothing))


@safeguard("P6.8", "P1", at="sink.topic_sync.TopicSync.__init__", world=lambda w: w.sink(restores=1, mirrored=True))
def without_start_at_progress(original, self, *arguments):
    """The sink starts at the offset that it has mirrored to its consumer group."""
    original(self, *arguments)
    self._read_to = dict.fromkeys(self._read_to, resolve_name("tests.simulation.replay.ask")("mirror"))


@safeguard("P1.10", "P1", at="sink.read.kafka_reader.source_options", world=lambda w: w.sink())
def without_committed_records(original, kafka):
    """The sink reads what transactions that were aborted have written."""
    return {**original(kafka), "kafka.isolation.level": "read_uncommitted"}


@safeguard("P3.8", at="sink.service.require_no_second_sink")
def without_refusal_of_connect_sinks(*_):
    """Rows that a Connect sink brings back are below the position of our sink, and are exported."""


@safeguard("P6.7")
def without_standby(patch: Patch) -> None:
    """A second sink works at once, and the two end each other again and again."""
    patch.replace("sink.advisory_lock.try_lock", lambda connection, topic: True)


@safeguard("P6.6", "P3", at="sink.apply.applier.require_fresh", real=True, world=lambda w: w.aging())
def without_age_limit_of_sinks(*_):
    """A sink that was away for too long continues, although compaction may have removed tombstones unread."""


@safeguard("P3.11", at="sink.position.advanced", real=True, world=lambda w: w.aging())
def without_age_of_next_record(original, at, to, last_ms, end, listed):
    """A position far behind the end of the log counts as fresh, so its age is never refused."""
    return original(at, to, last_ms, to, listed)


@safeguard(
    "P3.21", at=f"{REPLACEMENT}.require_read_in_time", real=True, world=lambda w: w.rebuilds(rebuilds="any time")
)
def without_age_limit_of_rebuilds(*_):
    """A rebuild that was frozen for longer than tombstones stay brings back what was settled meanwhile."""


@safeguard(
    "P3.21", NEVER_ENDS, at=f"{REPLACEMENT}.advance_progress", world=lambda w: w.rebuilds(rebuilds="when refused")
)
def without_position_of_rebuilds(*_):
    """A rebuild replaces the rows, and leaves position and time as they are."""


@safeguard("P4.12", NOTHING, at=f"{REPLACEMENT}.advance_progress", real=True, world=lambda w: w.fenced_rebuild())
def without_comparison_of_rebuilds(original, connection, _, new):
    """A rebuild replaces the rows although the position has moved since it began.

    Rows, position and time are replaced together: the older tables are exact too, and running sinks stop.
    """
    _, current = resolve_name("sink.progress.read_progress")(connection, next(iter(new)).topic)
    original(connection, current, new)
