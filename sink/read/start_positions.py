"""Where the reading of a topic starts: at the positions in Postgres, checked against the topic as it is now."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka.admin import AdminClient

from sink.position import Position, Positions, TopicPartition
from sink.progress import (
    QUERIES,
    Connection,
    advance_progress,
    begin_operations,
    begin_progress,
    forget_progress,
    postgres_now,
    read_progress,
)
from sink.read.log_ends import Log, read_log
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.cluster import TopicIdentity, describe_topic, identity_changed, require_same_identity
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.records.topics import kept_topic_name
from wait_registry.settings.topics import WaitTopicSettings

log = logging.getLogger(__name__)

_WAIT_RULE = "The wait topic must have cleanup.policy=compact without delete"
_OPERATIONS_RULE = "The operations topic must keep its records longer than Postgres is ever away"


@dataclass(frozen=True, slots=True)
class Start:
    """Where the reading of a topic starts.

    Attributes:
        identity: of the topic.
        positions: of its partitions.
        new: partitions that were never read before.
        passed: offsets that were deleted before they were read.
    """

    identity: TopicIdentity
    positions: Mapping[TopicPartition, Position]
    new: frozenset[TopicPartition]
    passed: int = 0


def wait_start(connection: Connection, admin: AdminClient, wait: WaitTopicSettings) -> Start:
    """Read or create the positions of the wait topic.

    Raises ConfigurationError when the topic isn't the one that was recorded, when records below the position's end are
    gone from its start (it must be compacted, not deleted), when the log is shorter than what was read, or when there
    are rows without a position.
    """
    recorded, positions = read_progress(connection, wait.topic)
    now = postgres_now(connection)
    seen = read_log(admin, describe_wait_topic(admin, wait.topic, wait.partitions))
    if recorded is None:
        require_no_rows(connection, wait.topic)
        positions = first_positions(seen, now)
        begin_progress(connection, seen.identity, positions)
        log.info("first start: reading %s from its beginning", wait.topic)
        return Start(seen.identity, positions, frozenset(positions))
    require_same_identity(recorded, seen.identity)
    _require_within_log(positions, seen, _WAIT_RULE)
    return Start(seen.identity, positions, frozenset())


def dead_letter_start(connection: Connection, admin: AdminClient, topic: str) -> Start:
    """Read or create the positions of a dead letter topic.

    It has a retention: a position that its log no longer holds moves to the log's start. A recreated topic is read from
    its beginning, and the rows of the old one are kept apart. Both are logged as a warning.

    Raises:
        ConfigurationError: there is no such topic.
        TransientError: Kafka can't be reached now; retry.
    """
    recorded, kept = read_progress(connection, topic)
    now = postgres_now(connection)
    seen = read_log(admin, describe_topic(admin, topic))
    if recorded is not None and recorded.topic_id != seen.identity.topic_id:
        _keep_apart(connection, topic, recorded.topic_id)
        kept = {}
    first = {name: place for name, place in first_positions(seen, now).items() if name not in kept}
    begin_progress(connection, seen.identity, first)
    moved = _moved_into_log(connection, kept, seen)
    passed = sum(max(0, moved[name].next_offset - position.next_offset) for name, position in kept.items())
    return Start(seen.identity, moved | first, frozenset(first), passed)


def operations_start(connection: Connection, admin: AdminClient, topic: str) -> Start:
    """Read or create the position of the operations topic, in which no record may be missed.

    Raises:
        ConfigurationError: there is no such topic; it isn't the recorded one; records were deleted unread.
        TransientError: Kafka can't be reached now; retry.
    """
    recorded, positions = read_progress(connection, topic)
    now = postgres_now(connection)
    seen = read_log(admin, describe_topic(admin, topic))
    if recorded is None:
        positions = first_positions(seen, now)
        with connection.transaction():
            keep_earlier_marks(connection, topic)
            begin_operations(connection, seen.identity, positions)
        return Start(seen.identity, positions, frozenset(positions))
    require_same_operations_topic(connection, recorded, seen.identity)
    _require_within_log(positions, seen, _OPERATIONS_RULE)
    return Start(seen.identity, positions, frozenset())


def require_same_operations_topic(connection: Connection, recorded: TopicIdentity, now: TopicIdentity) -> None:
    """Raise ConfigurationError if the tables were made from another operations topic, of this name or a later one."""
    later = connection.execute(QUERIES["later_operations"], {"topic": now.topic}).fetchone()
    if later is not None:
        raise ConfigurationError(
            f"the operations topic {now.topic} was replaced by {later[0]}, whose marks count after its own: set "
            f"operations.topic everywhere to {later[0]}, or to the name of a new topic"
        )
    changed = identity_changed(recorded, now)
    if changed:
        raise ConfigurationError(
            f"{changed}. The marks of the recorded topic are now only in Postgres. Leave the tables as they are, and "
            "set operations.topic everywhere to the name of a new topic with one partition (`waitreg topics create`)"
        )


def keep_earlier_marks(connection: Connection, topic: str) -> None:
    """Keep marks and other events of an earlier operations topic before those of ``topic``, which was never read."""
    connection.execute(QUERIES["keep_earlier_events"])
    kept = connection.execute(QUERIES["keep_earlier_marks"]).rowcount
    if kept:
        log.warning("the first reading of %s: %d marks of an earlier operations topic are kept and count", topic, kept)


def first_positions(seen: Log, now: datetime) -> dict[TopicPartition, Position]:
    """Return the positions of a topic that was never read: the logs' first offsets, as of before they were listed."""
    # A reading that begins at the log's start misses nothing however old the records are: a tombstone that was removed
    # took its wait with it, and one that removes a wait from now on stays for delete.retention.ms (KIP-534).
    # The tables are that fresh only at the end that was listed after ``now``: before, they show what later entries
    # remove.
    return {name: Position(offset, now, seen.ends[name]) for name, offset in seen.first.items()}


def require_no_rows(connection: Connection, topic: str) -> None:
    """Raise ConfigurationError for rows of the wait topic where no sink of ours has been.

    Reading the log from its start adds what is missing, and takes nothing away whose tombstone has been compacted.
    """
    row = connection.execute(QUERIES["has_waits"], {"topic": topic}).fetchone()
    if row is not None and row[0]:
        raise ConfigurationError(
            f"the tables have rows of {topic}, but no sink of ours has written a position: a Kafka Connect sink wrote "
            "them, or sink_progress was emptied. They may be older than what the log still holds: run `waitreg rebuild`"
        )


def require_same_topic(admin: AdminClient, identity: TopicIdentity) -> None:
    """Raise TransientError if a topic was recreated or grew: start again from the positions in Postgres."""
    changed = identity_changed(identity, describe_topic(admin, identity.topic))
    if changed:
        raise TransientError(changed)


def _require_within_log(positions: Positions, seen: Log, rule: str) -> None:
    """Raise ConfigurationError for a position that its log doesn't hold; ``rule`` says what the topic must be."""
    for name, position in sorted(positions.items()):
        if position.next_offset < seen.first[name]:
            raise ConfigurationError(
                f"{name} begins at offset {seen.first[name]}, but the sink has read up to {position.next_offset} only: "
                f"records were deleted unread. {rule} (`waitreg topics check`); then run `waitreg rebuild`"
            )
        if position.next_offset > seen.ends[name]:
            raise ConfigurationError(
                f"{name} ends at offset {seen.ends[name]}, but the sink has read up to {position.next_offset}: the log "
                "has lost its end (an unclean leader election, a restored disk?) or the tables are another cluster's. "
                "If the cluster is the right one, run `waitreg rebuild`"
            )


def _keep_apart(connection: Connection, topic: str, topic_id: str) -> None:
    """Rename the topic in all rows of a dead letter topic that was recreated; about 40 µs per row.

    The new topic counts its offsets from 0 again, so its dead letters would replace those of the old one, of which
    these rows are all that is left.
    """
    kept = kept_topic_name(topic, topic_id)
    log.warning(
        "dead letter topic %s was recreated: reading it from its beginning. Rows of the old one are kept, with %s for "
        "their topic",
        topic,
        kept,
    )
    with connection.transaction():
        forget_progress(connection, topic)
        connection.execute(QUERIES["rename_dead_letters"], {"topic": topic, "kept": kept})


def _moved_into_log(connection: Connection, kept: Positions, seen: Log) -> dict[TopicPartition, Position]:
    """Return the positions, those that their log doesn't hold (any more) moved to its first offset."""
    lost = {
        name: Position(seen.first[name], position.position_time, seen.ends[name])
        for name, position in kept.items()
        if not seen.first[name] <= position.next_offset <= seen.ends[name]
    }
    for name, position in lost.items():
        log.warning(
            "%s: the position %d is outside of the log (%d to %d), which has aged out or been cut; continuing at %d. "
            "Dead letters between may be missing from the table; raise the topic's retention.ms",
            name,
            kept[name].next_offset,
            seen.first[name],
            seen.ends[name],
            position.next_offset,
        )
    if lost:
        advance_progress(connection, kept, lost)
    return dict(kept) | lost
