"""The export of one partition as a pipeline of values: fence, snapshot, tail, chunks. The order is the proof.

After the *fence* no other sweeper's transaction of this partition can still commit. The *snapshot* of the tables says
which rows are due and from which offset on the log must be read. The *tail*, read from there to the end that the log
has after the fence, says which of them have been settled or renewed since. Snapshot and tail together are the exact
state at that moment, however far the sink is behind. Each *chunk* is judged after the tail was read on to the end of
the log again. Each step returns the value that the next step needs, so that no other order can be written.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sweeper.due import DueKey
from sweeper.export_decision import Outgoing, Unsendable, outgoing
from sweeper.export_transaction import ExportProducer
from sweeper.result import RowOutcome
from sweeper.snapshot import PartitionSnapshot
from sweeper.tables_policy import Scope, Start
from sweeper.tail import Position, Verdict, require_not_overtaken
from sweeper.wait_topic import wait_log
from wait_registry.clock import Clock, SystemClock
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.kafka.targets import Targets
from wait_registry.records.tombstone import Outcome
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.tracing import RecordPublished, Tracer

log = logging.getLogger(__name__)

_EXPORTED = {Outcome.EXPIRED: RowOutcome.EXPORTED, Outcome.REDELIVERED: RowOutcome.REDELIVERED}


class Closeable(Protocol):
    """A client or a connection."""

    def close(self) -> None: ...


Part = TypeVar("Part", bound=Closeable)


class Held(ExitStack):
    """Closes all that an export holds, the last part first; errors are logged, so that they change no result."""

    def keep(self, part: Part) -> Part:
        """Close this part at the end, whatever the others do."""
        self.callback(_close, part)
        return part


def _close(part: Closeable) -> None:
    try:
        part.close()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts must be closed as well
        log.warning("could not close %s: %s", type(part).__name__, error)


@dataclass(frozen=True, slots=True)
class Task:
    """One partition of one sweep.

    Attributes:
        scope: of the sweep.
        partition: of the wait topic.
        held: closes what the export opens.
        tracer: gets each record whose export is committed, if tracing is on.
        clock: for deadlines and DLQ_TIME.
    """

    scope: Scope
    partition: int
    held: Held
    tracer: Tracer | None = None
    clock: Clock = field(default_factory=SystemClock)

    @property
    def settings(self) -> Settings:
        """Return those of the sweep."""
        return self.scope.settings


def fence(task: Task) -> Fenced:
    """Shut out every other sweeper's transaction of this partition; errors as `ExportProducer.fence`."""
    client = admin(task.settings.kafka)
    producer = task.held.keep(ExportProducer(task.settings, task.partition))
    producer.fence()
    return Fenced(task, client, producer)


@dataclass(frozen=True, slots=True)
class Fenced:
    """A partition of which only this producer can commit exports."""

    task: Task
    admin: Admin
    producer: ExportProducer

    def snapshot(self) -> Snapshot:
        """Take the snapshot of the tables; errors as `PartitionSnapshot` and `TablesPolicy.start`."""
        task = self.task
        tables = task.held.keep(PartitionSnapshot(task.settings, task.partition))
        start = task.scope.tables.start(tables, task.scope, task.partition, self._log_end)
        reader = TailReader(wait_log(task.settings, task.partition), self.admin, task.clock, start.tail)
        return Snapshot(self, tables, start, task.held.keep(reader))

    def _log_end(self) -> int:
        topic, partition = self.task.settings.wait.topic, self.task.partition
        return end_offsets(self.admin, topic, [partition], "read_uncommitted")[partition]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The due rows as the tables show them, which may be long behind the log."""

    fenced: Fenced
    tables: PartitionSnapshot
    start: Start
    reader: TailReader

    def read_tail(self) -> DueRows:
        """Read what the log says since; errors as `TailReader.read_on`, `require_not_overtaken`, `Start.confirm`."""
        rows = DueRows(self)
        rows.read_on()
        self.start.confirm(self.reader)
        return rows


class DueRows:
    """The due rows and all that the log says of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Made by `Snapshot.read_tail`."""
        self._fenced = snapshot.fenced
        self._task = snapshot.fenced.task
        self._tables = snapshot.tables
        self._position = snapshot.start.position
        self._tail = snapshot.start.tail
        self._reader = snapshot.reader
        self._targets = Targets(snapshot.fenced.admin)

    def read_on(self) -> None:
        """Read the tail on to the end of the log; errors as `TailReader.read_on` and `require_not_overtaken`."""
        before_listing = self._tables.clock()
        end = self._reader.read_on()
        require_not_overtaken(self._position, end, self._tables.clock(), self._task.scope.topic.delete_retention_ms)
        self._position = Position(end, before_listing)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows chunk by chunk, each after the tail was read on; export a chunk before the next one.

        When this ends, by the last row or by any error, the fence has been used up: only a new one starts again.

        Raises:
            WaitRegistryError, psycopg.Error: the export is over, and the next sweep continues.
        """
        limits = self._task.settings.sweeper
        try:
            while keys := self._tables.next_keys(limits.chunk_rows, limits.chunk_bytes):
                self.read_on()
                yield self._chunk(keys)
                self._tail.ignore(key.wait_id for key in keys)
        finally:
            self._fenced.producer.retire()

    def _chunk(self, keys: Sequence[DueKey]) -> Chunk:
        verdicts = [self._tail.verdict(key.wait_id, key.wait_offset) for key in keys]
        still_open = [key for key, verdict in zip(keys, verdicts, strict=True) if verdict is Verdict.OPEN]
        rows, unreadable = self._tables.rows(still_open) if still_open else ([], [])
        now_ms = self._task.clock.now_ms()
        decided = [outgoing(row, self._task.settings, self._targets, now_ms) for row in rows]
        exports = [item for item in decided if isinstance(item, Outgoing)]
        unsendable = [*unreadable, *(item for item in decided if isinstance(item, Unsendable))]
        counts = Counter(RowOutcome(verdict.value) for verdict in verdicts if verdict is not Verdict.OPEN)
        counts += Counter({RowOutcome.UNSENDABLE: len(unsendable)})
        # Tombstones go to the wait topic.
        topics = {self._task.settings.wait.topic, *(record.topic for record in exports)} if exports else set()
        limits = {topic: self._targets(topic).max_message_bytes for topic in topics}
        return Chunk(exports, limits, unsendable, counts, self._fenced)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that were judged together.

    Attributes:
        exports: what is to be written for the open rows.
        limits: max.message.bytes of their topics and of the wait topic.
        unsendable: open rows that no topic takes.
        counts: rows by outcome, those of ``exports`` excepted.
        fenced: writes them.
    """

    exports: Sequence[Outgoing]
    limits: Mapping[str, int]
    unsendable: Sequence[Unsendable]
    counts: Counter[RowOutcome]
    fenced: Fenced

    def export(self) -> Counter[RowOutcome]:
        """Write the open rows' records and tombstones in one transaction; errors as `ExportProducer.export`.

        Returns:
            Rows by how they were exported.
        """
        if self.exports:
            started_ns = time.time_ns()
            self.fenced.producer.export(self.exports, self.limits)
            self._trace(started_ns)
        return Counter(_EXPORTED[record.outcome] for record in self.exports)

    def _trace(self, started_ns: int) -> None:
        tracer, ended_ns = self.fenced.task.tracer, time.time_ns()
        if tracer is None:
            return
        try:
            for record in self.exports:
                headers = tuple(record.headers)
                tracer.record_published(RecordPublished(record.topic, headers, record.outcome, started_ns, ended_ns))
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs spans and no export
            # Only its class: the text of a tracer's error may quote a header.
            partition = self.fenced.task.partition
            log.warning("partition %d: no traces of exported records: %s", partition, type(error).__name__)
