"""The topics that the sink reads: the wait topic, the dead letter topics and the operations topic."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from sink.apply.applier import Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.operation_writer import OperationWriter, show_marks_of_others
from sink.apply.wait_writer import WaitWriter
from sink.health import TopicHealth
from sink.position import LogEnds, TopicPartition, whole_from
from sink.progress import Connection
from sink.read.log_ends import stable_ends
from sink.read.record_columns import ALL, Columns, columns_up_to
from sink.read.start_positions import Start, dead_letter_start, operations_start, require_same_topic, wait_start
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES, Admin
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.kafka.wait_topic import require_same_wait_topic
from wait_registry.outage import Backoff
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings

FIRST_PAUSE_S: Final = 0.5
# A failure after so long doesn't repeat an earlier one.
LONG_RUN_S: Final = 60.0
# Of this many pauses between two signs of life, one may be missed.
SILENCE_FACTOR: Final = 3

# The default heap passes on one such dead letter, and omits one of twice the size (bench/large_records.py of 2527bb6).
MAX_SHOWN_BYTES = 33_554_432
# Room for what a dead letter says besides its record, error and stack trace above all.
LINEAGE_BYTES = 65_536


class SinkTopic(ABC):
    """A topic, and what stays from one start of the loop to the next.

    Attributes:
        stream: label of the metrics.
        writer: writes its batches.
        columns: what is read of each record.
        largest_bytes: how large a record may be, uncompressed.
        state: what /metrics and /health show.
        backoff: of the pauses after failures.
        targets: where a sink that is run once stops, listed at its first start.
    """

    stream: ClassVar[str]
    writer: Writer
    columns: Columns = ALL
    largest_bytes: int = PRODUCER_MAX_MESSAGE_BYTES

    def __init__(self, name: str, settings: Settings, admin: Admin) -> None:
        self.name = name
        self.admin = admin
        self.state = TopicHealth(self.stream, SILENCE_FACTOR * settings.sink.idle_progress_s)
        self.backoff = Backoff(FIRST_PAUSE_S, settings.sink.restart_backoff_max_s, random.random, LONG_RUN_S)
        self.targets: dict[TopicPartition, int] = {}
        self._whole_from: dict[TopicPartition, int] = {}

    @abstractmethod
    def start(self, connection: Connection) -> Start:
        """Return where to start; see `sink.read.start_positions`."""

    def begin(self, start: Start, ends: LogEnds) -> dict[TopicPartition, int]:
        """Note a start of the loop; return the offsets of `sink.position.whole_from`."""
        self.targets = self.targets or stable_ends(self.admin, start.positions)
        self._whole_from = whole_from(start.positions, start.new, ends, self._whole_from)
        return self._whole_from

    def require_same(self, identity: TopicIdentity) -> None:
        """Raise if the topic isn't what it was at the start."""
        require_same_topic(self.admin, identity)

    def delete_retention_ms(self) -> int | None:
        """Return what bounds the age of a position, None for no bound."""
        return None

    def write_by_time(self, connection: Connection) -> None:  # noqa: B027 - most topics have nothing
        """Write what no batch brings, once per sink.idle_progress_s."""


class WaitTopic(SinkTopic):
    """The wait topic, for the table ``wait``."""

    stream = "wait"

    def __init__(self, settings: Settings, admin: Admin) -> None:
        super().__init__(settings.wait.topic, settings, admin)
        self._wait = settings.wait
        self.largest_bytes = settings.wait.max_message_bytes
        self.writer = WaitWriter(settings.wait.topic)

    def start(self, connection: Connection) -> Start:
        return wait_start(connection, self.admin, self._wait)

    def require_same(self, identity: TopicIdentity) -> None:
        require_same_wait_topic(self.admin, identity)

    def delete_retention_ms(self) -> int | None:
        return delete_retention_ms(self.admin, self.name)


class DeadLetterTopic(SinkTopic):
    """A dead letter topic, for the table ``dead_letter``; a record that is too large to be registered comes here."""

    stream = "dead_letter"
    writer = DeadLetterWriter()

    def __init__(self, name: str, settings: Settings, admin: Admin) -> None:
        super().__init__(name, settings, admin)
        # Whatever was registered is shown: what a Connect source exports it takes from there.
        self.columns = columns_up_to(max(MAX_SHOWN_BYTES, settings.wait.max_message_bytes + LINEAGE_BYTES))

    def start(self, connection: Connection) -> Start:
        return dead_letter_start(connection, self.admin, self.name)


class OperationsTopic(SinkTopic):
    """The operations topic, for the tables ``operation`` and ``dead_letter_mark``."""

    stream = "operations"
    writer = OperationWriter()

    def start(self, connection: Connection) -> Start:
        return operations_start(connection, self.admin, self.name)


class OperationsTopicAlone(OperationsTopic):
    """The operations topic where a Kafka Connect sink writes the dead letters, and doesn't look at marks."""

    def write_by_time(self, connection: Connection) -> None:
        show_marks_of_others(connection)


class SinkTopics(NamedTuple):
    """What a sink reads.

    Attributes:
        first: the wait topic, or alongside a Connect sink the operations topic. If it fails, the loop ends.
        others: if one of them fails, it is skipped for a while.
        once: whether reading ends when all that was there at the first start is in Postgres.
    """

    first: SinkTopic
    others: tuple[SinkTopic, ...] = ()
    once: bool = False

    def all(self) -> Iterator[SinkTopic]:
        """Yield the first and the others."""
        yield self.first
        yield from self.others


def sink_topics(settings: Settings, once: bool) -> SinkTopics:
    """Return the wait topic and the others; alongside a Kafka Connect sink the operations topic alone."""
    admin, operations = open_admin(settings.kafka), settings.operations.topic
    if settings.sink.kind is SinkKind.CONNECT:
        return SinkTopics(OperationsTopicAlone(operations, settings, admin), once=once)
    dead_letters = (DeadLetterTopic(name, settings, admin) for name in dead_letter_topics(settings, "sink"))
    others = (*dead_letters, OperationsTopic(operations, settings, admin))
    return SinkTopics(WaitTopic(settings, admin), others, once)
