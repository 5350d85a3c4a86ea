"""The export of one partition: fence, view, tail, then chunk by chunk. The order is what makes it exact.

After the *fence* nobody else's transaction for this partition can still commit. The *view* says which rows are due and
up to which offset it is exact. The *tail*, read from there to the log's end of a moment after the fence, says which of
them have been resolved or renewed since. View and tail together are the exact truth of that moment, however far the
sink is behind. Any error ends the export: what is known is thrown away, and only a new fence begins it again.

A view that a Kafka Connect sink keeps is exact nowhere: its offsets run ahead of a table that was restored, and a task
that was thought dead may write old rows. There the tail begins at the first due row's own wait record, and only what
the log shows as the last entry of its id is exported (docs/decisions/0010-beside-a-connect-sink.md).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from sweeper.due_row import DueKey
from sweeper.fence import FencedProducer
from sweeper.outgoing import Outgoing, Policy, SetAside, outgoing
from sweeper.partition_result import NAMED_SET_ASIDE, PartitionResult, Skip
from sweeper.position import Position, oldest_allowed, require_young
from sweeper.tail import Tail, Verdict
from sweeper.tail_reader import TailReader
from sweeper.targets import Targets
from sweeper.view import View
from sweeper.wait_topic import WaitTopic
from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.tombstone import Outcome
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from wait_registry.telemetry.tracing import RecordPublished, Tracer

log = logging.getLogger(__name__)


class TopicChanged(ConfigurationError):
    """The view is one of another topic of the same name: stop every service."""


class ViewOfUnknownOrigin(ConfigurationError):
    """Rows are due, and no sink of ours has written down how far they are exact: say who keeps the view."""


class PartitionExport:
    """One attempt at one partition: `fence`, `view`, `tail`, `confirm` once, in this order, then `chunk` to the end."""

    def __init__(
        self,
        settings: Settings,
        topic: WaitTopic,
        partition: int,
        clock: Clock | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """Make the clients; nothing is asked yet.

        Args:
            settings: of the sweep.
            topic: the wait topic as the sweep found it.
            partition: of the wait topic.
            clock: for deadlines and DLQ_TIME.
            tracer: told of each record whose export is committed, if tracing is on.
        """
        self._settings = settings
        self._topic = topic
        self._partition = partition
        self._by_connect = settings.sink.kind is SinkKind.CONNECT
        self._clock = clock or SystemClock()
        self._tracer = tracer
        self._policy = Policy.of(settings)
        self._admin = admin(settings.kafka)
        self._targets = Targets(self._admin)
        self._producer = FencedProducer(settings, partition)
        self._view: View | None = None
        self._position: Position | None = None
        self._tail: Tail | None = None
        self._reader: TailReader | None = None
        self._count: Counter[str] = Counter()
        self._named: list[SetAside] = []

    def fence(self) -> None:
        """Shut out every other sweeper's transaction of this partition; errors as `FencedProducer.fence`."""
        self._producer.fence()

    def view(self) -> None:
        """Take the snapshot of Postgres.

        Raises:
            TopicChanged: the sink has seen another topic of this name.
            ViewOfUnknownOrigin: no sink of ours has been here, and sink.kind doesn't name another.
            PostgresUnavailable, psycopg.Error: retry.
        """
        self._view = view = View(self._settings, self._partition)
        now = view.clock()
        max_ids = self._settings.sweeper.max_tail_records
        if self._by_connect:
            # sink_progress is a leftover, if any.
            due = view.due_places(max_ids + 1)
            self._position = Position(min(due.values()) if due else self._log_end(), now)
            self._tail = Tail(self._position.next_offset, max_ids, due)
        else:
            self._position = self._start_by_progress(view)
            self._tail = Tail(self._position.next_offset, max_ids)
        old_before_ms = int((now - oldest_allowed(self._topic.delete_retention_ms)).timestamp() * 1000)
        self._reader = self._reading(self._tail, old_before_ms)

    def tail(self) -> None:
        """Read on to the log's end of this moment; errors as `TailReader.read_on` and `require_young`."""
        view, reader, position = self._view, self._reader, self._position
        assert view is not None and reader is not None and position is not None, "view comes before tail"
        before_listing = view.clock()
        end = reader.read_on()
        require_young(position, end, view.clock(), self._topic.delete_retention_ms)
        self._position = Position(end, before_listing)

    def confirm(self) -> None:
        """Beside a Connect sink, look again at wait records that are old; errors as `TailReader.read_to`.

        While the tail is read, compaction may remove a wait record behind the reader and its tombstone before it, if
        the tombstone is old enough. A wait record that still stands after the end was reached had none to lose, since
        compaction never removes the tombstone first; what is younger than half of delete.retention.ms can't lose one.
        """
        tail, reader = self._tail, self._reader
        assert tail is not None and reader is not None, "tail comes before confirm"
        end = reader.old_end
        if not self._by_connect or end == tail.start:
            return
        again = tail.begin_again()
        with closing(self._reading(again)) as second:
            second.read_to(end)
        tail.confirm(again, end)

    def chunk(self) -> bool:
        """Read the tail on, then export the next rows in one transaction; False when no row is left.

        Raises:
            WaitRegistryError, psycopg.Error: this export is over, whatever became of its transaction.
        """
        view, tail, sweeper = self._view, self._tail, self._settings.sweeper
        assert view is not None and tail is not None, "view comes before chunk"
        keys = view.next_keys(sweeper.chunk_rows, sweeper.chunk_bytes)
        if not keys:
            return False
        self.tail()
        letters = self._letters(view, self._open_ones(tail, keys))
        if letters:
            limits = {topic: self._targets(topic).max_message_bytes for topic in {letter.topic for letter in letters}}
            began_ns = time.time_ns()
            self._producer.export(letters, limits)
            self._count.update(letter.outcome for letter in letters)
            self._trace(letters, began_ns)
        tail.ignore(key.wait_id for key in keys)
        return True

    def result(self, skip: Skip | None = None, reason: str = "") -> PartitionResult:
        """Return what has been done so far, and why no more, if so."""
        count = self._count
        return PartitionResult(
            partition=self._partition,
            exported=count[Outcome.EXPIRED],
            redelivered=count[Outcome.REDELIVERED],
            superseded=count[Verdict.SUPERSEDED],
            unseen=count[Verdict.UNSEEN],
            set_aside=count["set_aside"],
            named=tuple(self._named),
            skip=skip,
            reason=reason,
        )

    def close(self) -> None:
        """Throw away producer, view and tail; what can't be closed is logged, the result stands without it."""
        for part in (self._producer, self._reader, self._view):
            try:
                if part is not None:
                    part.close()
            except Exception as error:  # noqa: BLE001 - whatever it is, the other parts are to be closed as well
                log.warning("partition %d: %s could not be closed: %s", self._partition, type(part).__name__, error)

    def _start_by_progress(self, view: View) -> Position:
        progress, wait_topic = view.progress, self._settings.wait.topic
        if progress is None:
            raise ViewOfUnknownOrigin(
                f"rows of {wait_topic}-{self._partition} are due, but no sink of ours has written down how far they "
                "are exact. Set sink.kind to connect if a Kafka Connect sink keeps the view; else run `waitreg rebuild`"
            )
        if progress.topic_id != self._topic.identity.topic_id:
            raise TopicChanged(
                f"the view was made from topic id {progress.topic_id}, {wait_topic} has the id "
                f"{self._topic.identity.topic_id} now: it was recreated. Stop all services; see wait.topic"
            )
        return Position(progress.next_offset, progress.position_time)

    def _log_end(self) -> int:
        name = self._settings.wait.topic
        return end_offsets(self._admin, name, [self._partition], "read_uncommitted")[self._partition]

    def _reading(self, tail: Tail, old_before_ms: int = 0) -> TailReader:
        return TailReader(self._settings, self._admin, self._clock, self._partition, tail, old_before_ms)

    def _open_ones(self, tail: Tail, keys: Sequence[DueKey]) -> list[DueKey]:
        verdicts = [tail.verdict(key.wait_id, key.wait_offset) for key in keys]
        self._count.update(verdict for verdict in verdicts if verdict is not Verdict.OPEN)
        return [key for key, verdict in zip(keys, verdicts, strict=True) if verdict is Verdict.OPEN]

    def _letters(self, view: View, keys: Sequence[DueKey]) -> list[Outgoing]:
        if not keys:
            return []
        rows, unreadable = view.rows(keys)
        now_ms = self._clock.now_ms()
        decided = [outgoing(row, self._policy, self._targets, now_ms) for row in rows]
        self._set_aside([*unreadable, *(item for item in decided if isinstance(item, SetAside))])
        return [item for item in decided if isinstance(item, Outgoing)]

    def _trace(self, letters: Sequence[Outgoing], began_ns: int) -> None:
        if self._tracer is None:
            return
        ended_ns = time.time_ns()
        try:
            for letter in letters:
                self._tracer.record_published(
                    RecordPublished(letter.topic, tuple(letter.headers), letter.outcome, began_ns, ended_ns)
                )
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs spans and no export
            # Its class alone: what a tracer says may quote a header.
            log.warning("partition %d: exported records are not traced: %s", self._partition, type(error).__name__)

    def _set_aside(self, rows: Sequence[SetAside]) -> None:
        self._count["set_aside"] += len(rows)
        self._named.extend(rows[: max(0, NAMED_SET_ASIDE - len(self._named))])
