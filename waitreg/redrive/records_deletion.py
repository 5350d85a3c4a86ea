"""Deletes the old records of a dead letter topic in Kafka, unless an open dead letter is among them.

The exact marks, as an executor reads them, say which dead letters are open.
Deleting is no part of a transaction, and takes no fence: a fence would end the running jobs of each group that has dead
letters there. So the tail is read again right before each deletion, and once more after the last one. A dead letter
that is restored in between stays in the tables with all that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AclOperation

from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic, may
from wait_registry.kafka.positions import earliest_offsets, end_offsets, offsets_from_time
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.records.operation import DeletionRequested, Place, RecordsDeleted
from wait_registry.settings.tree import Settings
from waitreg.redrive.exact_marks import ExactMarks, exact_marks, operations_log
from waitreg.redrive.job_decision import Standing
from waitreg.redrive.job_listing import new_job
from waitreg.redrive.operator_events import write_event
from waitreg.redrive.prefix_cut import Obstacle, Prefix, obstacle, prefix
from waitreg.redrive.request import Asker
from waitreg.redrive.snapshot import TableSnapshot

if TYPE_CHECKING:
    from confluent_kafka import Message

_FILE: Final = "deploy/kafka/purge.sh"


class Part(NamedTuple):
    """The prefix of one partition, and where and why it may not be deleted."""

    partition: int
    prefix: Prefix
    obstacle: tuple[int, Obstacle] | None

    @property
    def is_deletable(self) -> bool:
        """Return whether there are records to delete, and nothing forbids it."""
        return self.obstacle is None and len(self.prefix.offsets) > 0


class Done(NamedTuple):
    """What a deletion did.

    Attributes:
        answer: the event that was written last.
        open_again: dead letters that were restored while their records were deleted.
    """

    answer: RecordsDeleted
    open_again: list[Place]


@contextmanager
def deletion(settings: Settings, topic: str, time: datetime) -> Iterator[Deletion]:
    """Look at the records of a dead letter topic that are older than a time; nothing is deleted.

    Args:
        settings: of the cluster, the tables and the topics.
        topic: the dead letter topic.
        time: records from this time on are kept, and those behind them.

    Raises:
        ConfigurationError: the topic isn't one of dead letters that the tables have read; no permission.
        TransientError, psycopg.Error: Kafka or Postgres is unavailable; retry.
    """
    client, clock = admin(settings.kafka), SystemClock()
    with exact_marks(settings, client, clock) as marks:
        positions = _require_dead_letters(settings, marks.tables, client, topic)
        yield Deletion(settings, topic, client, clock, marks, positions, time)


@dataclass(frozen=True)
class Deletion:
    """The deletion of old records of one topic, and the marks that say which of them are open; use `deletion`."""

    settings: Settings
    topic: str
    client: Admin
    clock: Clock
    marks: ExactMarks
    positions: Mapping[int, int]
    time: datetime
    job: str = field(default_factory=new_job)

    @cached_property
    def parts(self) -> list[Part]:
        """Return what may be deleted of each partition; errors as `deletion`."""
        numbers = range(describe_topic(self.client, self.topic).partitions)
        first = earliest_offsets(self.client, self.topic, numbers)
        # Asked before the times, so that no record counts as old that arrives in between.
        ends = end_offsets(self.client, self.topic, numbers)
        recent = offsets_from_time(self.client, self.topic, numbers, int(self.time.timestamp() * 1000))
        self.marks.read_on()
        parts = []
        for number in numbers:
            at = None if recent[number][0] < 0 else recent[number][0]
            asked = prefix(first[number], at, ends[number], self.positions.get(number))
            first_open = self.first_open(number, asked)
            unknown = self.first_unknown(number, asked) if first_open is None else None
            parts.append(Part(number, asked, obstacle(asked, first_open, unknown)))
        return parts

    def first_open(self, partition: int, asked: Prefix) -> int | None:
        """Return the offset of the first open dead letter of a prefix."""
        tables, tail = self.marks.tables, self.marks.tail
        with closing(tables.perhaps_open(self.topic, partition, asked.offsets, tail.marked)) as rows:
            for offset, wait_id, state in rows:
                place = tables.marked(Place(self.topic, partition, offset))
                if tail.standing(place, wait_id, None, Standing(state)).state == "open":
                    return int(offset)
        return None

    def first_unknown(self, partition: int, asked: Prefix) -> int | None:
        """Read a prefix, and return the offset of its first record of which the tables have no dead letter."""
        if not asked.offsets:
            return None
        log = operations_log(self.settings)._replace(topic=self.topic, partition=partition)
        with closing(self.marks.tables.offsets(self.topic, partition, asked.offsets)) as known:
            compared = _Compared(asked, known)
            with closing(TailReader(log, self.client, self.clock, compared)) as reader:
                reader.read_to(asked.before)
        return compared.unknown

    def _require_permission(self) -> None:
        """Raise ConfigurationError if the broker doesn't let this user delete records of the topic, or record that."""
        wanted = {self.topic: AclOperation.DELETE, self.settings.operations.topic: AclOperation.WRITE}
        for topic, operation in wanted.items():
            if not may(self.client, topic, operation):
                raise ConfigurationError(
                    f"this user may not delete records of {self.topic}, which is for administrators: grant the user "
                    f"of kafka.security {operation.name} on {topic} ({_FILE})"
                )

    def run(self, asker: Asker, reason: str) -> Done:
        """Delete what `parts` allows, partition by partition.

        Args:
            asker: who asks for it.
            reason: why.

        Returns:
            What was deleted. The operations topic has the request and the answer; after a crash, only the request.

        Raises:
            ConfigurationError: no permission. Nothing was deleted.
            TransientError: Kafka didn't take the request, and nothing was deleted; or it didn't take the answer.
        """
        job, topic, asked_by = self.job, self.topic, asker._asdict()
        todo = [part for part in self.parts if part.is_deletable]
        before = {part.partition: part.prefix.before for part in todo}
        self._require_permission()
        event = DeletionRequested(job=job, topic=topic, before=before, reason=reason, **asked_by)
        write_event(self.settings, job, event, f"recording that records of {topic} will be deleted")
        first: dict[int, int] = {}
        failed: dict[int, str] = {}
        for part in todo:
            try:
                first[part.partition] = self._delete(part)
            except WaitRegistryError as error:
                failed[part.partition] = str(error)
        done = RecordsDeleted(job=job, topic=topic, first=first, failed=failed, **asked_by)
        write_event(self.settings, job, done, f"recording which records of {topic} are deleted")
        self.marks.read_on()
        deleted = [part for part in todo if part.partition in first]
        opened = {part.partition: self.first_open(part.partition, part.prefix) for part in deleted}
        return Done(done, [Place(topic, number, offset) for number, offset in opened.items() if offset is not None])

    def _delete(self, part: Part) -> int:
        """Delete one prefix; ConfigurationError if something forbids it by now."""
        self.marks.read_on()
        found = obstacle(part.prefix, self.first_open(part.partition, part.prefix), None)
        if found is not None:
            raise ConfigurationError(f"{found[0]}: {found[1]}")
        return delete_before(self.client, self.topic, part.partition, part.prefix.before)


def delete_before(client: Admin, topic: str, partition: int, before: int) -> int:
    """Delete the records of a partition before an offset; return the first offset that the broker keeps.

    Raises:
        WaitRegistryError: as `answer`; the records may have been deleted all the same.
    """
    futures = client.delete_records([TopicPartition(topic, partition, before)], request_timeout=timeout_of(client))
    doing = f"deleting the records of {topic}-{partition} before {before}"
    (future,) = futures.values()
    return int(answer(client, future, doing).low_watermark)


class _Compared:
    """The records of a prefix, compared with the offsets that the tables have."""

    def __init__(self, asked: Prefix, known: Iterator[int]) -> None:
        self.start = asked.first
        self.unknown: int | None = None
        self._before = asked.before
        self._known = known
        self._next = next(known, None)

    def take(self, message: Message) -> None:
        """Take the next record; there are offsets without one, such as the markers of transactions."""
        offset = message.offset()
        assert offset is not None  # it was read from a log
        if self.unknown is not None or offset >= self._before:
            return
        while self._next is not None and self._next < offset:
            self._next = next(self._known, None)
        if self._next != offset:
            self.unknown = offset


def _require_dead_letters(settings: Settings, tables: TableSnapshot, client: Admin, topic: str) -> dict[int, int]:
    """Return up to where the tables have read a dead letter topic, by partition.

    Raises:
        ConfigurationError: it is another topic, or another one of this name.
    """
    others = {settings.wait.topic, settings.operations.topic, *settings.processor.topics}
    named = {*dead_letter_topics(settings), *dead_letter_topics(settings, "sink")}
    if topic in others or not (topic in named or tables.has_dead_letters(topic)):
        raise ConfigurationError(
            f"{topic} is no dead letter topic: neither dead_letter.topic nor sink.dead_letter_topics names it, and the "
            "tables have no dead letter of it, or it is an input, wait or operations topic. Its records are kept"
        )
    topic_id, positions = tables.reached(topic)
    if topic_id is None:
        raise ConfigurationError(
            f"the tables don't say how far they have read {topic}, so what may be open there isn't known: start "
            "`waitreg sink`, or with sink.kind=connect leave the records to the topic's retention"
        )
    now = describe_topic(client, topic)
    if now.topic_id != topic_id:
        raise ConfigurationError(
            f"the tables have read the topic {topic} with the ID {topic_id}, and its ID is {now.topic_id} now: it was "
            "recreated. Wait until the sink has read the new one"
        )
    return positions
