"""How far the tables are exact, which depends on the sink that keeps them: a policy that is given to the sweeper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES
from sweeper.snapshot import PartitionSnapshot
from sweeper.tail import Position, Tail
from sweeper.wait_topic import WaitTopic
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings


class TopicChanged(ConfigurationError):
    """The tables were made from another topic of the same name: stop every service."""


class RecordedTopic(NamedTuple):
    """The topic that the sink recorded as the one it reads, and how old its oldest position is, s."""

    identity: TopicIdentity
    staleness_s: float


@dataclass(frozen=True, slots=True)
class Start:
    """Where the tail of a partition starts: below it the tables are exact, or nothing counts; the tail is empty."""

    position: Position
    tail: Tail

    def confirm(self, reader: TailReader) -> None:
        """Take another look at the log once the tail is read, if the policy needs it; errors as `TailReader.read_on`.

        By default none is needed.
        """


class TablesPolicy:
    """What the sweeper may assume of tables that the sink of this project keeps; another sink needs another policy.

    That sink writes rows and progress in one transaction, so the tables are exact below its position.
    """

    def recorded_topics(self, connection: psycopg.Connection[TupleRow], topic: str) -> list[RecordedTopic]:
        """Return the topics of this name that the tables were made from; none before the sink's first start."""
        rows = connection.execute(QUERIES["recorded_topic"], {"topic": topic}).fetchall()
        return [RecordedTopic(TopicIdentity(topic, topic_id, count), age_s) for topic_id, count, age_s in rows]

    def start(self, tables: PartitionSnapshot, scope: Scope, partition: int, log_end: Callable[[], int]) -> Start:
        """Return where the tail of a partition starts: at the sink's position.

        Args:
            tables: the snapshot.
            scope: of the sweep.
            partition: of the wait topic.
            log_end: asks for the partition's high watermark.

        Raises:
            TopicChanged: the sink has read another topic of this name.
            ConfigurationError: no sink has recorded its progress in this schema, or sink.kind names another.
            psycopg.Error: Postgres is unavailable; retry.
        """
        settings, topic = scope.settings, scope.topic
        progress, wait_topic = tables.progress, settings.wait.topic
        if settings.sink.kind is not SinkKind.SPARK:
            raise ConfigurationError(f"sink.kind is {settings.sink.kind.value}: start `waitreg sweeper`")
        if progress is None:
            raise ConfigurationError(
                f"rows of {wait_topic}-{partition} are due, but no sink has recorded its progress in this schema. Set "
                "sink.kind to connect if a Kafka Connect sink keeps the tables; else run `waitreg rebuild`"
            )
        if progress.topic_id != topic.identity.topic_id:
            raise TopicChanged(
                f"the tables were made from topic ID {progress.topic_id}, {wait_topic} has the ID "
                f"{topic.identity.topic_id} now: it was recreated. Stop all services; see wait.topic"
            )
        position = Position(progress.next_offset, progress.position_time)
        return Start(position, Tail(position.next_offset, settings.sweeper.max_tail_records))


OUR_SINK: Final = TablesPolicy()


@dataclass(frozen=True, slots=True)
class Scope:
    """What one sweep is about; Spark's workers get it.

    Attributes:
        settings: of the sweep; they hold secrets, so they are neither logged nor printed.
        topic: the wait topic as the sweep found it.
        tables: what may be assumed of the tables.
    """

    settings: Settings
    topic: WaitTopic
    tables: TablesPolicy = OUR_SINK
