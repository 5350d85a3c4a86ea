"""Mutants of the sweeper."""

from __future__ import annotations

import sys
import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from psycopg import IsolationLevel

from tests.mutants.mutant import changes_query, mutant

Patch = pytest.MonkeyPatch


@mutant("P3.1")
def exports_without_the_tail(patch: Patch) -> None:
    """Rows are exported as the tables show them, whatever the log says since."""
    from wait_registry.kafka.tail_reader import TailReader

    patch.setattr(TailReader, "read_on", lambda self: self._position)


@mutant("P3.2")
def reads_the_tail_once(patch: Patch) -> None:
    """An outcome that comes after the first reading and before a later chunk is missed."""
    from sweeper.export import DueRows

    original, read = DueRows.read_on, set[int]()

    def read_on(self: DueRows) -> None:
        if id(self) not in read:
            read.add(id(self))
            original(self)

    patch.setattr(DueRows, "read_on", read_on)


@mutant("P3.3")
def ignores_newer_registrations(patch: Patch) -> None:
    """A registration that was renewed is exported by its old expiry."""
    from wait_registry.kafka.tail_reader import TailReader

    original = TailReader._take

    def take(self: Any, message: Any) -> None:
        if message.error() is None and message.value() is not None:
            self._position = message.offset() + 1
        else:
            original(self, message)

    patch.setattr(TailReader, "_take", take)


@mutant("P3.4")
def reads_to_the_last_stable_offset(patch: Patch) -> None:
    """What an open transaction holds is ignored instead of awaited."""
    from wait_registry.kafka.tail_reader import TailReader

    original = TailReader._end
    patch.setattr(TailReader, "_end", lambda self, isolation: original(self, "read_committed"))


@mutant("P3.5")
def exports_what_the_log_does_not_show(patch: Patch) -> None:
    """A row is exported although its own wait record is no longer in the tail."""
    from sweeper.tail import Tail, Verdict

    original = Tail.verdict

    def verdict(self: Tail, wait_id: str, wait_offset: int) -> Verdict:
        found = original(self, wait_id, wait_offset)
        return Verdict.OPEN if found is Verdict.UNSEEN else found

    patch.setattr(Tail, "verdict", verdict)


@mutant("P3.6")
def trusts_the_position_of_another_sink(patch: Patch) -> None:
    """A row that a restore or a zombie brought back is exported, although the log has settled it."""
    from sweeper.tables_policy import Start
    from sweeper.tail import Position, Tail
    from wait_registry.cli.connect.sweeping import LogPolicy

    def start(self: Any, tables: Any, settings: Any, *others: Any) -> Start:
        position = Position(tables.progress.next_offset, tables.progress.position_time)
        return Start(position, Tail(position.next_offset, settings.sweeper.max_tail_records))

    patch.setattr(LogPolicy, "start", start)


@mutant("P3.7")
def reads_old_wait_records_once(patch: Patch) -> None:
    """Alongside a Connect sink an old wait record counts, although compaction may have passed the reader."""
    from wait_registry.cli.connect.sweeping import FirstDueRow

    patch.setattr(FirstDueRow, "confirm", lambda self, reader: None)


@mutant("P3.9")
def reads_rows_as_they_are_later(patch: Patch) -> None:
    """A row that is renewed while it is judged is exported as the new one."""
    from sweeper import snapshot

    patch.setattr(snapshot, "IsolationLevel", SimpleNamespace(REPEATABLE_READ=IsolationLevel.READ_COMMITTED))


@mutant("P3.10")
def trusts_a_position_of_any_age(patch: Patch) -> None:
    """Tombstones after an old position may be gone, and their rows are exported."""
    from sweeper import export

    patch.setattr(export, "require_not_overtaken", lambda *arguments: None)


@mutant("P3.12")
def allows_for_no_clock_difference(patch: Patch) -> None:
    """A row is due the moment it expires, while a processor whose clock is slow still works on it."""
    changes_query(patch, "sweeper", "due_keys", "- make_interval(secs => %(skew_s)s)", "")


@mutant("P4.1")
def has_an_id_of_its_own(patch: Patch) -> None:
    """No sweeper fences another, and both export a row."""
    from sweeper import export_transaction

    original = export_transaction.transactional_id
    patch.setattr(
        export_transaction, "transactional_id", lambda topic, number: f"{original(topic, number)}.{uuid.uuid4()}"
    )


@mutant("P4.2")
def fences_after_the_snapshot(patch: Patch) -> None:
    """An export of another sweeper between snapshot and fence is in neither."""
    from sweeper import export
    from sweeper.export_transaction import ExportProducer

    class Late(ExportProducer):
        def fence(self) -> None:
            """Do nothing yet."""

    original = export.Snapshot.read_tail

    def read_and_fence(self: Any) -> Any:
        rows = original(self)
        ExportProducer.fence(self.fenced.producer)
        return rows

    patch.setattr(export, "ExportProducer", Late)
    patch.setattr(export.Snapshot, "read_tail", read_and_fence)


@mutant("P4.3")
def commits_the_tombstone_later(patch: Patch) -> None:
    """A crash between the two transactions exports the row again."""
    from wait_registry.kafka import fenced_producer

    class Eager(Producer):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.wait_topic = config["transactional.id"].removeprefix("waitreg.sweep.").rpartition(".")[0]

        def produce(self, topic: str, *values: Any, **named: Any) -> None:
            super().produce(topic, *values, **named)
            if topic != self.wait_topic:
                self.commit_transaction(30)
                self.begin_transaction()

    patch.setattr(fenced_producer, "Producer", Eager)


@mutant("P4.4")
def continues_after_an_unknown_commit(patch: Patch) -> None:
    """A chunk is exported again by a new producer, although its commit may have been decided."""
    from sweeper.export import Chunk
    from sweeper.export_transaction import ExportProducer

    original = Chunk.export

    def export(self: Any) -> Any:
        try:
            return original(self)
        except Exception:  # noqa: BLE001 - the fault that is planted
            another = ExportProducer(self.fenced.task.settings, self.fenced.task.partition)
            another.fence()
            return original(replace(self, fenced=replace(self.fenced, producer=another)))

    patch.setattr(Chunk, "export", export)


@mutant("P4.5")
def sends_tombstones_by_key(patch: Patch) -> None:
    """A tombstone goes where its key points instead of where its wait record is, and settles nothing."""
    from sweeper.export_transaction import ExportProducer

    original = ExportProducer._records

    def records(self: ExportProducer, letters: Any) -> Any:
        return original(self, [letter._replace(wait_partition=-1) for letter in letters])

    patch.setattr(ExportProducer, "_records", records)


@mutant("P4.7")
def redelivers_without_end(patch: Patch) -> None:
    """A record that kills its processor never reaches the dead letter topic."""
    from sweeper import export_decision

    original = export_decision._redelivery

    def redelivery(row: Any, policy: Any) -> Any:
        return original(row._replace(record=row.record._replace(max_deliveries=sys.maxsize)), policy)

    patch.setattr(export_decision, "_redelivery", redelivery)


@mutant("P4.9")
def sends_what_no_topic_takes(patch: Patch) -> None:
    """One row fails the transaction of all the others, at every sweep again."""
    from sweeper import export_decision

    patch.setattr(export_decision, "record_size", lambda key, value, headers: 0)


@mutant("P4.10")
def is_interrupted_by_the_server(patch: Patch) -> None:
    """A role's statement_timeout ends each query for what is due."""
    from sweeper import sweeper

    patch.setattr(sweeper, "lift_time_limits", lambda connection: None)


@mutant("P8.12")
def takes_the_tables_of_another_topic(patch: Patch) -> None:
    """A recreated wait topic is swept by the tables of the old one."""
    from sweeper.tables_policy import TablesPolicy

    original = TablesPolicy.start

    def start(self: Any, tables: Any, settings: Any, topic: Any, *others: Any) -> Any:
        same = replace(topic.identity, topic_id=tables.progress.topic_id)
        return original(self, tables, settings, replace(topic, identity=same), *others)

    patch.setattr(TablesPolicy, "start", start)


@mutant("P8.13")
def waits_for_a_clock_that_was_set_back(patch: Patch) -> None:
    """A sweeper whose host's clock is set back by an hour doesn't sweep for an hour."""
    from sweeper.schedule import Schedule

    patch.setattr(Schedule, "_follow_the_clock", lambda self: None)
