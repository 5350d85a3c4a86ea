"""Where a stream starts: at what Postgres says, checked against what the topics are and hold now."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka.admin import AdminClient

from sink.made_anew import keep_apart
from sink.position import LogEnds, Position, Positions, TopicPartition
from sink.progress import (
    QUERIES,
    Connection,
    advance_progress,
    begin_progress,
    postgres_now,
    read_progress,
)
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.cluster import (
    TopicIdentity,
    describe_topic,
    identity_changed,
    require_same_identity,
)
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.settings.topics import WaitTopicSettings

log = logging.getLogger(__name__)


class DeadLetterTopicChanged(TransientError):
    """A dead letter topic was recreated or grew while it was read: start the stream again."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a stream starts; ``new`` are partitions that were never read before."""

    identities: tuple[TopicIdentity, ...]
    positions: Mapping[TopicPartition, Position]
    new: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Log:
    """A topic as Kafka shows it now: its identity, and each partition's first offset and end."""

    identity: TopicIdentity
    first: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


def wait_start(connection: Connection, admin: AdminClient, wait: WaitTopicSettings) -> Start:
    """Read or make the positions of the wait topic.

    Raises ConfigurationError when the topic isn't the one that was recorded, when records below the position's end are
    gone from its start (it must be compacted, not deleted), when the log is shorter than what was read, or when there
    are rows without a position.
    """
    recorded, positions = read_progress(connection, wait.topic)
    now = postgres_now(connection)
    seen = _log(admin, describe_wait_topic(admin, wait.topic, wait.partitions))
    if recorded is None:
        require_no_rows(connection, wait.topic)
        positions = _first_positions(seen, now)
        begin_progress(connection, seen.identity, positions)
        log.info("first start: reading %s from its beginning", wait.topic)
        return Start((seen.identity,), positions, frozenset(positions))
    require_same_identity(recorded, seen.identity)
    require_within_log(positions, seen)
    return Start((seen.identity,), positions, frozenset())


def dead_letter_start(connection: Connection, admin: AdminClient, topics: Iterable[str]) -> Start:
    """Read or make the positions of the dead letter topics.

    These have a retention: a position that its log no longer holds moves to the log's start, and a topic made anew is
    read from its beginning, the old one's rows kept apart, each with a warning. Raises ConfigurationError when a topic
    isn't there.
    """
    identities: list[TopicIdentity] = []
    positions: dict[TopicPartition, Position] = {}
    new: set[TopicPartition] = set()
    for topic in topics:
        recorded, kept = read_progress(connection, topic)
        now = postgres_now(connection)
        seen = _log(admin, describe_topic(admin, topic))
        if recorded is not None and recorded.topic_id != seen.identity.topic_id:
            keep_apart(connection, topic, recorded.topic_id)
            kept = {}
        first = {name: place for name, place in _first_positions(seen, now).items() if name not in kept}
        begin_progress(connection, seen.identity, first)
        identities.append(seen.identity)
        positions |= _within_log(connection, kept, seen) | first
        new |= first.keys()
    return Start(tuple(identities), positions, frozenset(new))


def moved_into_log(positions: Positions, seen: Log) -> dict[TopicPartition, Position]:
    """Return what becomes of the positions that their log doesn't hold (any more): its first offset."""
    return {
        name: Position(seen.first[name], position.position_time, seen.ends[name])
        for name, position in positions.items()
        if not seen.first[name] <= position.next_offset <= seen.ends[name]
    }


def require_no_rows(connection: Connection, topic: str) -> None:
    """Raise ConfigurationError for rows of the wait topic where no sink of ours has been.

    Reading the log from its start adds what is missing, and takes nothing away whose tombstone has been compacted.
    """
    row = connection.execute(QUERIES["has_waits"], {"topic": topic}).fetchone()
    if row is not None and row[0]:
        raise ConfigurationError(
            f"the view has rows of {topic}, but no sink of ours has written a position: a Kafka Connect sink wrote "
            "them, or sink_progress was emptied. They may be older than what the log still tells: run `waitreg rebuild`"
        )


def require_within_log(positions: Positions, seen: Log) -> None:
    """Raise ConfigurationError for a position of the wait topic that its log doesn't hold."""
    for name, position in sorted(positions.items()):
        if position.next_offset < seen.first[name]:
            raise ConfigurationError(
                f"{name} begins at offset {seen.first[name]}, but the sink has read up to {position.next_offset} only: "
                "records were deleted unread. The wait topic must have cleanup.policy=compact without delete "
                "(`waitreg topics check`); then run `waitreg rebuild`"
            )
        if position.next_offset > seen.ends[name]:
            raise ConfigurationError(
                f"{name} ends at offset {seen.ends[name]}, but the sink has read up to {position.next_offset}: the log "
                "has lost its end (an unclean leader election, a restored disk?) or this is another cluster's view. "
                "If the cluster is the right one, run `waitreg rebuild`"
            )


def require_same_dead_letter_topics(admin: AdminClient, identities: Iterable[TopicIdentity]) -> None:
    """Raise `DeadLetterTopicChanged` when a dead letter topic was recreated or grew."""
    for identity in identities:
        changed = identity_changed(identity, describe_topic(admin, identity.topic))
        if changed:
            raise DeadLetterTopicChanged(f"{changed}: the dead letter stream starts again")


def log_ends(connection: Connection, admin: AdminClient, names: Iterable[TopicPartition]) -> LogEnds:
    """Read Postgres' clock, then the high watermarks: in this order a record at or above an end is younger."""
    listed_at = postgres_now(connection)
    return LogEnds(_high_watermarks(admin, names), listed_at)


def stable_ends(admin: AdminClient, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the last stable offsets: how far a read_committed reader can get now."""
    return {
        TopicPartition(topic, partition): offset
        for topic, partitions in _by_topic(names).items()
        for partition, offset in end_offsets(admin, topic, partitions).items()
    }


def _high_watermarks(admin: AdminClient, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, partition): offset
        for topic, partitions in _by_topic(names).items()
        for partition, offset in end_offsets(admin, topic, partitions, "read_uncommitted").items()
    }


def _by_topic(names: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name in sorted(names):
        topics.setdefault(name.topic, []).append(name.partition)
    return topics


def _within_log(connection: Connection, kept: Positions, seen: Log) -> dict[TopicPartition, Position]:
    lost = moved_into_log(kept, seen)
    for name, position in lost.items():
        log.warning(
            "%s: the position %d is outside of the log (%d to %d), which has aged out or been cut; going on at %d. "
            "Dead letters between may be missing from the view; raise the topic's retention.ms",
            name,
            kept[name].next_offset,
            seen.first[name],
            seen.ends[name],
            position.next_offset,
        )
    if lost:
        advance_progress(connection, kept, lost)
    return dict(kept) | lost


def _log(admin: AdminClient, identity: TopicIdentity) -> Log:
    names = [TopicPartition(identity.topic, partition) for partition in range(identity.partitions)]
    first = earliest_offsets(admin, identity.topic, range(identity.partitions))
    return Log(identity, {name: first[name.partition] for name in names}, _high_watermarks(admin, names))


def first_positions(
    connection: Connection, admin: AdminClient, identity: TopicIdentity
) -> dict[TopicPartition, Position]:
    """Return the positions of a topic that was never read: the logs' beginnings, as of now."""
    now = postgres_now(connection)
    return _first_positions(_log(admin, identity), now)


def _first_positions(seen: Log, now: datetime) -> dict[TopicPartition, Position]:
    # A reading that begins at the log's start misses nothing however old the records are: a tombstone that was removed
    # took its wait with it, and one that removes a wait from now on stays for delete.retention.ms (KIP-534).
    # The view is that fresh only at the end that was listed after ``now``: before, it shows what later entries remove.
    return {name: Position(offset, now, seen.ends[name]) for name, offset in seen.first.items()}
