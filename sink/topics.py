"""The topics that the sink reads: the wait topic, the dead letter topics and the operations topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple

from sink.apply.applier import Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.operation_writer import OperationWriter, show_marks_of_others
from sink.apply.wait_writer import WaitWriter
from sink.metrics import TopicState
from sink.position import LogEnds, TopicPartition, whole_from
from sink.progress import Connection
from sink.read.log_ends import stable_ends
from sink.read.record_columns import ALL, Columns, columns_up_to
from sink.read.start_positions import Start, dead_letter_start, operations_start, require_same_topic, wait_start
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES, Admin
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.kafka.wait_topic import require_same_wait_topic
from wait_registry.outage import Backoff
from wait_registry.settings.topics import WaitTopicSettings
from wait_registry.settings.tree import Settings

# The label ``stream`` of the metrics.
WAIT: Final = "wait"
DEAD_LETTER: Final = "dead_letter"
OPERATIONS: Final = "operations"

# The default heap passes on one such dead letter, and omits one of twice the size (bench/large_records.py of 2527bb6).
MAX_SHOWN_BYTES = 33_554_432
# Room for what a dead letter says besides its record, error and stack trace above all.
LINEAGE_BYTES = 65_536


class SinkTopic(ABC):
    """A topic, and what stays from one start of the loop to the next.

    Args:
        name: of the topic.
        admin: a client of the cluster.
        state: what /metrics and /health show.
        backoff: of the pauses after failures.

    Attributes:
        columns: what is read of each record.
        largest_bytes: how large a record may be, uncompressed.
        targets: where a sink that is run once stops, listed at its first start.
    """

    columns: Columns = ALL
    largest_bytes: int = PRODUCER_MAX_MESSAGE_BYTES

    def __init__(self, name: str, admin: Admin, state: TopicState, backoff: Backoff) -> None:
        self.name = name
        self.admin = admin
        self.state = state
        self.backoff = backoff
        self.targets: dict[TopicPartition, int] = {}
        self._whole_from: dict[TopicPartition, int] = {}

    @property
    @abstractmethod
    def writer(self) -> Writer:
        """What writes its batches."""

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

    def __init__(self, wait: WaitTopicSettings, admin: Admin, state: TopicState, backoff: Backoff) -> None:
        super().__init__(wait.topic, admin, state, backoff)
        self._wait = wait
        self.largest_bytes = wait.max_message_bytes
        self._writer = WaitWriter(wait.topic)

    @property
    def writer(self) -> WaitWriter:
        return self._writer

    def start(self, connection: Connection) -> Start:
        return wait_start(connection, self.admin, self._wait)

    def require_same(self, identity: TopicIdentity) -> None:
        require_same_wait_topic(self.admin, identity)

    def delete_retention_ms(self) -> int | None:
        return delete_retention_ms(self.admin, self.name)


class DeadLetterTopic(SinkTopic):
    """A dead letter topic, for the table ``dead_letter``; a record that is too large to be registered comes here."""

    writer = DeadLetterWriter()

    def __init__(self, name: str, admin: Admin, state: TopicState, backoff: Backoff, shown_bytes: int) -> None:
        super().__init__(name, admin, state, backoff)
        self.columns = columns_up_to(shown_bytes)

    def start(self, connection: Connection) -> Start:
        return dead_letter_start(connection, self.admin, self.name)


class OperationsTopic(SinkTopic):
    """The operations topic, for the tables ``operation`` and ``dead_letter_mark``."""

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


def max_shown_bytes(settings: Settings) -> int:
    """Return the size beyond which a dead letter isn't read into its table."""
    # Whatever was registered is shown: what a Connect source exports it takes from there.
    return max(MAX_SHOWN_BYTES, settings.wait.max_message_bytes + LINEAGE_BYTES)
