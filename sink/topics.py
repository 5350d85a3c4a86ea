"""The topics that the sink reads: the wait topic, the dead letter topics and the operations topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sink.apply.applier import Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.operation_writer import OperationWriter, show_marks_of_others
from sink.apply.wait_writer import WaitWriter
from sink.metrics import TopicState
from sink.position import TopicPartition
from sink.progress import Connection
from sink.read.start_positions import (
    Start,
    dead_letter_start,
    operations_start,
    require_same_topic,
    wait_start,
)
from wait_registry.backoff import Backoff
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES, Admin
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.kafka.wait_topic import require_same_wait_topic
from wait_registry.settings.root import Settings

# The label ``stream`` of the metrics.
WAIT: Final = "wait"
DEAD_LETTER: Final = "dead_letter"
OPERATIONS: Final = "operations"

# The default heap passes on one such dead letter, and omits one of twice the size (bench/large_records.py of 2527bb6).
MAX_SHOWN_BYTES = 33_554_432
# Room for what a dead letter says besides its record, error and stack trace above all.
LINEAGE_BYTES = 65_536


@dataclass
class SinkTopic:
    """A topic, what is different for each kind, and what stays from one start of the loop to the next.

    Attributes:
        name: of the topic.
        state: what /metrics and /health show.
        backoff: of the pauses after failures.
        admin: a client of the cluster.
        writer: writes its batches.
        largest_bytes: how large a record may be, uncompressed.
        start: returns where to start; see `sink.read.start_positions`.
        require_same: raises if the topic isn't what it was at the start.
        delete_retention_ms: returns what bounds the age of a position, None for no bound.
        write_by_time: writes what no batch brings, once per sink.idle_progress_s.
        whole_from: see `sink.position.whole_from`.
        targets: where a sink that is run once stops, listed at its first start.
    """

    name: str
    state: TopicState
    backoff: Backoff
    admin: Admin
    writer: Writer
    largest_bytes: int
    start: Callable[[Connection], Start]
    require_same: Callable[[TopicIdentity], None]
    delete_retention_ms: Callable[[], int | None] = lambda: None
    write_by_time: Callable[[Connection], None] = lambda _: None
    whole_from: dict[TopicPartition, int] = field(default_factory=dict)
    targets: dict[TopicPartition, int] = field(default_factory=dict)


def wait_topic(settings: Settings, admin: Admin, state: TopicState, backoff: Backoff) -> SinkTopic:
    """Return the wait topic, for the table ``wait``."""
    return SinkTopic(
        settings.wait.topic,
        state,
        backoff,
        admin,
        WaitWriter(settings.wait.topic),
        settings.wait.max_message_bytes,
        start=lambda connection: wait_start(connection, admin, settings.wait),
        require_same=partial(require_same_wait_topic, admin),
        delete_retention_ms=partial(delete_retention_ms, admin, settings.wait.topic),
    )


def dead_letter_topic(name: str, admin: Admin, state: TopicState, backoff: Backoff) -> SinkTopic:
    """Return a dead letter topic, for the table ``dead_letter``."""
    return SinkTopic(
        name,
        state,
        backoff,
        admin,
        DeadLetterWriter(),
        PRODUCER_MAX_MESSAGE_BYTES,  # a record that is too large to be registered becomes a dead letter
        start=lambda connection: dead_letter_start(connection, admin, name),
        require_same=partial(require_same_topic, admin),
    )


def operations_topic(name: str, admin: Admin, state: TopicState, backoff: Backoff) -> SinkTopic:
    """Return the operations topic, for the tables ``operation`` and ``dead_letter_mark``."""
    return SinkTopic(
        name,
        state,
        backoff,
        admin,
        OperationWriter(),
        PRODUCER_MAX_MESSAGE_BYTES,
        start=lambda connection: operations_start(connection, admin, name),
        require_same=partial(require_same_topic, admin),
    )


def operations_topic_alone(name: str, admin: Admin, state: TopicState, backoff: Backoff) -> SinkTopic:
    """Return the operations topic where a Kafka Connect sink writes the dead letters, and doesn't look at marks."""
    return replace(operations_topic(name, admin, state, backoff), write_by_time=show_marks_of_others)


def max_shown_bytes(settings: Settings) -> int:
    """Return the size beyond which a dead letter isn't read into its table."""
    # Whatever was registered is shown: what a Connect source exports it takes from there.
    return max(MAX_SHOWN_BYTES, settings.wait.max_message_bytes + LINEAGE_BYTES)
