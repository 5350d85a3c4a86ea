"""Take one rule out of the real sweeper: each function removes the rule after which it is named.

Where a mutant of `tests.mutants` removes the same rule, it is called.
"""

# ruff: noqa: SLF001 - the rules are private
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest import MonkeyPatch

from sweeper import export_decision, export_transaction
from sweeper.export import Chunk, DueRows, Snapshot
from sweeper.export_transaction import ExportProducer
from sweeper.snapshot import TableSnapshot
from tests.mutants import sweeper
from tests.simulation import sweeper_world
from tests.simulation.replay import process_name
from wait_registry.kafka import tail_reader
from wait_registry.kafka.clients import consumer_config
from wait_registry.records.wait_partition import wait_partitions


def tail_is_read(patch: MonkeyPatch) -> None:
    """Export what the tables show."""
    sweeper.exports_without_the_tail(patch)


def tail_is_read_on(patch: MonkeyPatch) -> None:
    """Read the tail once, whatever comes before a later chunk."""
    read_on = DueRows.read_on

    def changed(self: DueRows) -> None:
        if not hasattr(self, "was_read"):
            self.was_read = True  # type: ignore[attr-defined]
            read_on(self)

    patch.setattr(DueRows, "read_on", changed)


def newer_wait_supersedes(patch: MonkeyPatch) -> None:
    """Let only tombstones supersede a row."""
    sweeper.ignores_newer_registrations(patch)


def end_is_awaited(patch: MonkeyPatch) -> None:
    """Read to the last stable offset, whatever an open transaction may hold."""
    sweeper.reads_to_the_last_stable_offset(patch)


def _fences_late(patch: MonkeyPatch, late: Callable[[Callable[[Any], None]], None]) -> None:
    """Fence where ``late`` calls what it is given, which fences once, instead of at the beginning."""
    fence = ExportProducer.fence

    def once(producer: ExportProducer) -> None:
        if not hasattr(producer, "has_fenced"):
            producer.has_fenced = True  # type: ignore[attr-defined]
            fence(producer)

    patch.setattr(ExportProducer, "fence", lambda self: None)
    late(once)


def fence_before_tail(patch: MonkeyPatch) -> None:
    """Fence when the rows have been judged."""

    def late(fence: Callable[[Any], None]) -> None:
        export = Chunk.export

        def changed(self: Chunk) -> Any:
            fence(self.fenced.producer)
            return export(self)

        patch.setattr(Chunk, "export", changed)

    _fences_late(patch, late)


def fence_before_end(patch: MonkeyPatch) -> None:
    """Fence when the end of the log has been asked for, before a chunk's tail is read up to it."""

    def late(fence: Callable[[Any], None]) -> None:
        read_on = DueRows.read_on

        def changed(self: DueRows) -> None:
            end = self._reader._end

            def then_fence(isolation: Any) -> int:
                found = end(isolation)
                if hasattr(self, "was_read"):
                    fence(self._fenced.producer)
                return found

            self._reader._end = then_fence  # type: ignore[method-assign]
            read_on(self)
            self._reader._end = end  # type: ignore[method-assign]
            self.was_read = True  # type: ignore[attr-defined]

        patch.setattr(DueRows, "read_on", changed)

    _fences_late(patch, late)


def fence_before_view(patch: MonkeyPatch) -> None:
    """Fence after the snapshot of the tables."""

    def late(fence: Callable[[Any], None]) -> None:
        read_tail = Snapshot.read_tail

        def changed(self: Snapshot) -> DueRows:
            fence(self.fenced.producer)
            return read_tail(self)

        patch.setattr(Snapshot, "read_tail", changed)

    _fences_late(patch, late)


def view_is_one_snapshot(patch: MonkeyPatch) -> None:
    """Let each query of the snapshot see the tables as they are then."""
    sweeper.reads_rows_as_they_are_later(patch)


def progress_before_rows(patch: MonkeyPatch) -> None:
    """Take the position from a later snapshot than the rows."""
    begin = TableSnapshot.__init__

    def changed(self: TableSnapshot, *arguments: Any) -> None:
        begin(self, *arguments)
        later = TableSnapshot.__new__(TableSnapshot)
        begin(later, *arguments)
        self.progress = later.progress
        later.close()

    patch.setattr(TableSnapshot, "__init__", changed)


class _Only:
    """Sends only the dead letters, or only the tombstones, of what a producer is handed."""

    def __init__(self, producer: Any, topic: str, tombstones: bool) -> None:
        self._producer, self._topic, self._tombstones = producer, topic, tombstones

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def produce(self, topic: str, *values: Any, **named: Any) -> None:
        if (topic == self._topic) is self._tombstones:
            self._producer.produce(topic, *values, **named)


def _exports_twice(patch: MonkeyPatch, tombstones_first: bool) -> None:
    export = ExportProducer.export

    def changed(self: ExportProducer, *letters: Any) -> None:
        producer: Any = self._producer
        for tombstones in (tombstones_first, not tombstones_first):
            only: Any = _Only(producer, self._wait_topic, tombstones)
            self._producer = only
            export(self, *letters)
        self._producer = producer

    patch.setattr(ExportProducer, "export", changed)


def tombstone_with_its_letter(patch: MonkeyPatch) -> None:
    """Commit the dead letters, then the tombstones."""
    _exports_twice(patch, tombstones_first=False)


def letter_with_its_tombstone(patch: MonkeyPatch) -> None:
    """Commit the tombstones, then the dead letters."""
    _exports_twice(patch, tombstones_first=True)


def one_transactional_id(patch: MonkeyPatch) -> None:
    """Give each sweeper a transactional ID of its own."""
    shared = export_transaction.transactional_id
    patch.setattr(export_transaction, "transactional_id", lambda *of: f"{shared(*of)}.{process_name()}")


def unknown_commit_ends_the_sweep(patch: MonkeyPatch) -> None:
    """After a commit without an answer, export the chunk again by another producer."""
    sweeper.continues_after_an_unknown_commit(patch)


def own_tombstone_to_its_partition(patch: MonkeyPatch) -> None:
    """Let the client choose the partition of an export's tombstone."""
    published = export_decision._published
    patch.setattr(export_decision, "_published", lambda *row: published(*row)._replace(wait_partition=-1))


def processors_tombstone_to_its_partition(patch: MonkeyPatch) -> None:
    """Let processors write tombstones to another partition than that of the registration."""
    patch.setattr(sweeper_world, "tombstone_partition", lambda registered: registered + 1)


def key_stays_in_its_partition(patch: MonkeyPatch) -> None:
    """Count the partitions that the wait topic has now for a second registration."""
    patch.setattr(sweeper_world, "wait_partitions", lambda wait_ids, _: wait_partitions(wait_ids, 3))


def tail_reads_committed(patch: MonkeyPatch) -> None:
    """Let tombstones count in the tail that were aborted."""
    uncommitted = {"isolation.level": "read_uncommitted"}
    patch.setattr(tail_reader, "consumer_config", lambda kafka, **named: consumer_config(kafka, **named) | uncommitted)
