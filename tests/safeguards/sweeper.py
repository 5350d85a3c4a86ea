"""Safeguards of the sweeper."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

from tests.safeguards.catalogue import NEVER_ENDS, NOTHING, Patch, safeguard

TAIL = "wait_registry.kafka.tail_reader.TailReader"
PRODUCER = "sweeper.export_transaction.ExportProducer"
READ_ON = "sweeper.export.DueRows.read_on"


@safeguard("P3.1", at=f"{TAIL}.read_on", real=True, world=lambda w: w.sweeps())
def without_tail(_, self):
    """Rows are exported as the tables show them, whatever the log says since."""
    return self._position


@safeguard("P3.2", at=READ_ON, real=True, world=lambda w: w.sweeps(waits=(0, 1), sweepers=1, faults=0))
def without_reading_on(original, self):
    """An outcome that comes after the first reading of the tail and before a later chunk is missed."""
    if not hasattr(self, "was_read"):
        self.was_read = True
        original(self)


@safeguard("P3.3", at=f"{TAIL}._take", real=True, world=lambda w: w.sweeps())
def without_newer_registrations(original, self, message):
    """A registration that was renewed is exported by its old expiry."""
    if message.error() is None and message.value() is not None:
        self._position = message.offset() + 1
    else:
        original(self, message)


@safeguard("P3.4", at=f"{TAIL}._end", real=True, world=lambda w: w.sweeps())
def without_awaited_transactions(original, self, isolation):
    """What an open transaction holds is ignored instead of awaited."""
    return original(self, "read_committed")


@safeguard("P3.5", at="sweeper.tail.Tail.verdict")
def without_unseen_rows(original, self, wait_id, wait_offset):
    """A row is exported although its own wait record is no longer in the tail."""
    verdicts = resolve_name("sweeper.tail.Verdict")
    found = original(self, wait_id, wait_offset)
    return verdicts.OPEN if found is verdicts.UNSEEN else found


@safeguard("P3.6", at="sweeper.connect_policy.LogPolicy.start")
def without_distrust_of_connect_positions(_, self, tables, settings, *others):
    """A row that a restore or a zombie brought back is exported, although the log has settled it."""
    tail, position = resolve_name("sweeper.tail"), tables.progress.next_offset
    start = resolve_name("sweeper.tables_policy.Start")
    trusted = tail.Position(position, tables.progress.position_time)
    return start(trusted, tail.Tail(position, settings.sweeper.max_tail_records))


@safeguard("P3.7", at="sweeper.connect_policy.FirstDueRow.confirm")
def without_second_look(*_):
    """Alongside a Connect sink an old wait record counts, although compaction may have passed the reader."""


def _fence_once(patch: Patch) -> Callable[[Any], None]:
    """Fence where the returned function is called first, instead of at the beginning of a sweep."""
    producer: Any = resolve_name(PRODUCER)

    class Late(producer):
        has_fenced = False

        def fence(self):
            """Not yet."""

    def once(late: Any) -> None:
        if not late.has_fenced:
            late.has_fenced = True
            producer.fence(late)

    patch.replace("sweeper.export.ExportProducer", Late)
    return once


def _fences_before(patch: Patch, step: str) -> None:
    fence = _fence_once(patch)

    @patch.around(step)
    def then(original, self):
        fence(self.fenced.producer)
        return original(self)


@safeguard("P4.2", real=True, world=lambda w: w.calm())
def without_fence_before_tail(patch: Patch) -> None:
    """The sweeper fences when the rows have been judged, so an export of another sweeper may be missed."""
    _fences_before(patch, "sweeper.export.Chunk.export")


@safeguard("P4.2", NOTHING, real=True, world=lambda w: w.sweeps(restores=1))
def without_fence_before_snapshot(patch: Patch) -> None:
    """The sweeper fences after the snapshot of the tables.

    The tail is read after the fence, and from the tables' position on: an export between is in it.
    """
    _fences_before(patch, "sweeper.export.Snapshot.read_tail")


@safeguard("P4.2", world=lambda w: w.calm())
def without_fence_before_end(patch: Patch) -> None:
    """The sweeper fences after it has asked for the end of the log, before it reads a chunk's tail up to there."""
    fence = _fence_once(patch)

    @patch.around(READ_ON)
    def read_on(original, self):
        end = self._reader._end

        def then_fence(isolation):
            found = end(isolation)
            if hasattr(self, "was_read"):
                fence(self._fenced.producer)
            return found

        self._reader._end = then_fence
        original(self)
        self._reader._end = end
        self.was_read = True


@safeguard("P4.1", real=True, world=lambda w: w.calm(alike=False))
def without_one_transactional_id(patch: Patch) -> None:
    """No sweeper fences another, and both export a row."""

    @patch.around("sweeper.export_transaction.transactional_id")
    def transactional_id(original, *of):
        return f"{original(*of)}.{patch.own_name()}"


@safeguard("P3.9", world=lambda w: w.sweeps())
def without_position_in_the_snapshot(patch: Patch) -> None:
    """The position is from a later snapshot than the rows."""
    partition_snapshot = resolve_name("sweeper.snapshot.PartitionSnapshot")

    @patch.around("sweeper.snapshot.PartitionSnapshot.__init__")
    def begin(original, self, *arguments):
        original(self, *arguments)
        later = partition_snapshot.__new__(partition_snapshot)
        original(later, *arguments)
        self.progress = later.progress
        later.close()


@safeguard("P3.9", real=True, world=lambda w: w.sweeps(restores=1))
def without_one_snapshot(patch: Patch) -> None:
    """A row that is renewed while it is judged is exported as the new one."""
    later = SimpleNamespace(REPEATABLE_READ=resolve_name("psycopg.IsolationLevel.READ_COMMITTED"))
    patch.replace("sweeper.snapshot.IsolationLevel", later)


@safeguard("P3.10", at="sweeper.export.require_not_overtaken", real=True, world=lambda w: w.aging())
def without_age_limit_of_sweeps(*_):
    """Tombstones after an old position may be gone, and their rows are exported."""


@safeguard("P3.10", at=READ_ON, world=lambda w: w.aging(sweeps=True))
def without_age_after_tail(original, self):
    """The sweeper judges the age of a position by the time before it reads the tail."""
    early = self._tables.clock()
    self._tables.clock = lambda: early
    original(self)
    del self._tables.clock


@safeguard("P3.12")
def without_clock_allowance(patch: Patch) -> None:
    """A row is due the moment it expires, while a processor whose clock is slow still works on it."""
    patch.query("sweeper", "due_keys", "- make_interval(secs => %(skew_s)s)", "")


@safeguard("P8.12", at="sweeper.tables_policy.TablesPolicy.start")
def without_identity_of_swept_topics(original, self, tables, scope, *others):
    """A recreated wait topic is swept by the tables of the old one."""
    same = replace(scope.topic.identity, topic_id=tables.progress.topic_id)
    return original(self, tables, replace(scope, topic=replace(scope.topic, identity=same)), *others)


def _exports_twice(original: Any, self: Any, given: Any, tombstones_first: bool) -> None:
    """Commit only the tombstones, then only the dead letters, or the other way round."""
    with_tombstones = self._with_tombstones
    for kind in (tombstones_first, not tombstones_first):
        self._with_tombstones = lambda records, kind=kind: (
            sent for sent in with_tombstones(records) if (sent.topic == self._wait_topic) is kind
        )
        original(self, *given)
    del self._with_tombstones


@safeguard("P4.3", at=f"{PRODUCER}.export", real=True, world=lambda w: w.calm())
def without_tombstones_with_dead_letters(original, self, *given):
    """The dead letters are committed before the tombstones, and a crash between exports the rows again."""
    _exports_twice(original, self, given, tombstones_first=False)


@safeguard("P4.3", NEVER_ENDS, at=f"{PRODUCER}.export", world=lambda w: w.calm())
def without_dead_letters_with_tombstones(original, self, *given):
    """The tombstones are committed before the dead letters, and a crash between leaves a record without either."""
    _exports_twice(original, self, given, tombstones_first=True)


@safeguard("P4.4", at="sweeper.export.Chunk.export", real=True, world=lambda w: w.calm(faults=1))
def without_end_after_unknown_commits(original, self):
    """A chunk is exported again by a new producer, although its commit may have been decided."""
    try:
        return original(self)
    except Exception:  # noqa: BLE001 - the fault that is planted
        another = resolve_name(PRODUCER)(self.fenced.task.settings, self.fenced.task.partition)
        another.fence()
        return original(replace(self, fenced=replace(self.fenced, producer=another)))


@safeguard("P4.5", at=f"{PRODUCER}._with_tombstones", real=True, world=lambda w: w.calm())
def without_partitions_of_tombstones(original, self, records):
    """A tombstone goes where its key points instead of where its wait record is, and settles nothing."""
    return original(self, [record._replace(wait_partition=-1) for record in records])


@safeguard("P4.7", at="sweeper.export_decision._redelivery")
def without_delivery_limit(original, row, settings):
    """A record that kills its processor never reaches the dead letter topic."""
    return original(row._replace(record=row.record._replace(max_deliveries=sys.maxsize)), settings)


@safeguard("P4.9")
def without_unsendable_rows(patch: Patch) -> None:
    """One row fails the transaction of all the others, at every sweep again."""
    patch.replace("sweeper.export_decision.record_size", lambda key, value, headers: 0)


@safeguard("P4.10", at="sweeper.sweeper.lift_time_limits")
def without_lifted_time_limits(*_):
    """A role's statement_timeout ends each query for what is due."""


@safeguard("P8.13", at="sweeper.periods.Schedule._follow_the_clock")
def without_following_the_clock(*_):
    """A sweeper whose host's clock is set back by an hour doesn't sweep for an hour."""
