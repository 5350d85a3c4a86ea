"""How far the tables are exact, which depends on the sink that keeps them: a policy that is given to the sweeper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES
from sweeper.snapshot import TableSnapshot
from sweeper.tail import Position, Tail
from sweeper.tail_reader import TailReader
from sweeper.wait_topic import WaitTopic
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind


class TopicChanged(ConfigurationError):
    """The tables were made from another topic of the same name: stop every service."""


class MissingSinkProgress(ConfigurationError):
    """Rows are due, and no sink has recorded its progress in this schema."""


class RecordedTopic(NamedTuple):
    """The topic that the sink recorded as the one it reads, and how old its oldest position is, s."""

    identity: TopicIdentity
    staleness_s: float


class Start(Protocol):
    """Where the tail of a partition starts, and what is to be done when it has been read."""

    @property
    def position(self) -> Position:
        """The tables are exact below it, or the tail holds all that counts from it on."""

    @property
    def tail(self) -> Tail:
        """Empty, from the position on."""

    def confirm(self, reader: TailReader) -> None:
        """Take another look at the log, if the policy needs it; errors as `TailReader.read_on`."""


class TablesPolicy(Protocol):
    """What the sweeper may assume of the tables."""

    def recorded_topics(self, connection: psycopg.Connection[TupleRow], topic: str) -> list[RecordedTopic]:
        """Return the topics of this name that the tables were made from, as far as the sink has recorded them."""

    def start(
        self, tables: TableSnapshot, settings: Settings, topic: WaitTopic, partition: int, log_end: Callable[[], int]
    ) -> Start:
        """Return where the tail of a partition starts.

        Args:
            tables: the snapshot.
            settings: of the sweep.
            topic: the wait topic as the sweep found it.
            partition: of the wait topic.
            log_end: asks for the partition's high watermark.

        Raises:
            WaitRegistryError: the partition can't be swept now.
            psycopg.Error: Postgres is unavailable; retry.
        """


@dataclass(frozen=True, slots=True)
class ExactBelow:
    """The tables are exact below the position: nothing remains to be confirmed."""

    position: Position
    tail: Tail

    def confirm(self, reader: TailReader) -> None:
        """Do nothing."""


class ProgressPolicy:
    """The sink of this project writes rows and progress in one transaction: the tables are exact below its position."""

    def recorded_topics(self, connection: psycopg.Connection[TupleRow], topic: str) -> list[RecordedTopic]:
        """Return what the sink recorded; none before its first start."""
        rows = connection.execute(QUERIES["recorded_topic"], {"topic": topic}).fetchall()
        return [RecordedTopic(TopicIdentity(topic, topic_id, count), age_s) for topic_id, count, age_s in rows]

    def start(
        self, tables: TableSnapshot, settings: Settings, topic: WaitTopic, partition: int, log_end: Callable[[], int]
    ) -> ExactBelow:
        """Start at the sink's position.

        Raises:
            TopicChanged: the sink has read another topic of this name.
            MissingSinkProgress: no sink has recorded progress, or sink.kind names another.
        """
        progress, wait_topic = tables.progress, settings.wait.topic
        if settings.sink.kind is not SinkKind.SPARK:
            raise MissingSinkProgress(f"sink.kind is {settings.sink.kind.value}: start `waitreg sweeper`")
        if progress is None:
            raise MissingSinkProgress(
                f"rows of {wait_topic}-{partition} are due, but no sink has recorded its progress in this schema. Set "
                "sink.kind to connect if a Kafka Connect sink keeps the tables; else run `waitreg rebuild`"
            )
        if progress.topic_id != topic.identity.topic_id:
            raise TopicChanged(
                f"the tables were made from topic ID {progress.topic_id}, {wait_topic} has the ID "
                f"{topic.identity.topic_id} now: it was recreated. Stop all services; see wait.topic"
            )
        position = Position(progress.next_offset, progress.position_time)
        return ExactBelow(position, Tail(position.next_offset, settings.sweeper.max_tail_records))
