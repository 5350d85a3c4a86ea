"""A group's offsets in Kafka: look at them, and commit others while the group has no members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from wait_registry.errors import FencedError, WaitRegistryError
from wait_registry.kafka.clients import consumer_config, usable_settings
from wait_registry.kafka.cluster import TopicIdentity, describe_topic
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.group_description import GroupDescription, describe_group
from wait_registry.kafka.outside_log import outside_log
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.tree import Settings
from waitreg.rewind.plan import Move, Position
from waitreg.rewind.targets import by_topic

# The answers to a commit by a client that isn't a member, while the group has members.
_HAS_MEMBERS = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)
_STOP = "Stop every processor of the group first"


def require_no_members(kafka: KafkaSettings, group: str) -> None:
    """Refuse a group with active members: their next commits would undo the move.

    Raises:
        FencedError: it has some; the message names them.
        WaitRegistryError: as `describe_group`.
    """
    described = describe_group(kafka, group)
    if described.held:
        raise FencedError(f"{members_text(group, described)}. {_STOP}; a killed one leaves when its session is over")


def members_text(group: str, described: GroupDescription) -> str:
    """Return a clause that names the members of a group, their hosts and partitions."""
    each = [_member_text(member, described) for member in sorted(described.held)]
    return f"group {group} has {len(each)} active member{'s' if each[1:] else ''}: {'; '.join(each)}"


def _member_text(member: str, described: GroupDescription) -> str:
    places = ", ".join(f"{topic}[{partition}]" for topic, partition in sorted(described.held[member]))
    return f"{member} at {described.hosts.get(member, 'an unknown host')} with {places or 'no partition'}"


def log_ends(
    admin: AdminClient, topics: Iterable[str], partitions: Collection[int]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return first and end offset of partitions, of all partitions if none is named.

    Raises:
        ConfigurationError: no such topic or partition, or no permission.
    """
    found: dict[TopicPartition, tuple[int, int]] = {}
    for topic in topics:
        asked = sorted(set(partitions)) or range(describe_topic(admin, topic).partitions)
        ends, firsts = end_offsets(admin, topic, asked), earliest_offsets(admin, topic, asked)
        # With an empty log, or one that is deleted meanwhile, the end is where it begins.
        found |= {(topic, each): (firsts[each], max(firsts[each], ends[each])) for each in asked}
    return found


def positions(
    settings: Settings,
    admin: AdminClient,
    ends: Mapping[TopicPartition, tuple[int, int]],
) -> dict[TopicPartition, Position]:
    """Return where the group is in each partition.

    Args:
        settings: group and wait topic.
        admin: the client to ask.
        ends: first and end offset by partition.
    """
    wait_topic = describe_wait_topic(admin, settings.wait.topic, settings.wait.partitions)
    ids = {topic: describe_topic(admin, topic).topic_id for topic in by_topic(ends)}
    found: dict[TopicPartition, Position] = {}
    for answer in committed_offsets(settings.kafka, settings.processor.group, ends):
        place = (answer.topic, answer.partition)
        committed, metadata = _as_of_this_topic(answer, wait_topic, ids[answer.topic])
        found[place] = Position(*ends[place], committed, metadata)
    return found


def outside(admin: AdminClient, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, Position]:
    """Return the positions of the partitions whose committed offset isn't in the log."""
    offsets = {place: found.committed for place, found in positions.items() if found.committed is not None}
    firsts = {place: positions[place].first for place in offsets}
    # High watermarks: while a transaction is open, an offset behind the last stable one is in the log, too.
    ends = {
        (topic, partition): end
        for topic, partitions in by_topic(offsets).items()
        for partition, end in end_offsets(admin, topic, partitions, "read_uncommitted").items()
    }
    return {place: positions[place] for place in outside_log(offsets, firsts, ends)}


def _as_of_this_topic(
    answer: KafkaPartition, wait_topic: TopicIdentity, topic_id: str
) -> tuple[int | None, CommitMetadata]:
    """Return the committed offset and its metadata; an offset of a deleted topic says nothing about this one."""
    recorded = decode_metadata(answer.metadata, answer.offset)
    if recorded is None:
        return (answer.offset if answer.offset >= 0 else None), CommitMetadata(wait_topic, topic_id)
    if recorded.input_topic_id not in (None, topic_id):
        return None, CommitMetadata(recorded.wait_topic, topic_id)
    # The recorded wait topic stays: the processors refuse one that was recreated since.
    return answer.offset, replace(recorded, input_topic_id=topic_id, kept_below=None)


def commit(kafka: KafkaSettings, group: str, moves: Iterable[Move]) -> None:
    """Commit the targets of all moves in one request; the broker refuses it if the group has a member by now.

    Raises:
        FencedError: it has.
        WaitRegistryError: any other refusal; run the command again, which shows what was committed.
    """
    offsets = [
        KafkaPartition(*move.place, move.target, move.metadata.encode(move.target)) for move in moves if move.changes
    ]
    if not offsets:
        return
    # A consumer that never subscribes, for the reason in `committed_offsets`.
    with usable_settings():
        consumer = Consumer(consumer_config(kafka, **{"group.id": group}))
    try:
        answers = consumer.commit(offsets=offsets, asynchronous=False)
        refused = next((answer.error for answer in answers if answer.error is not None), None)
    except KafkaException as error:
        refused = error.args[0]
    finally:
        consumer.close()
    if refused is not None:
        raise _refusal(refused, group, sorted({place.topic for place in offsets}))


def _refusal(error: KafkaError, group: str, topics: list[str]) -> WaitRegistryError:
    if error.code() in _HAS_MEMBERS:
        return FencedError(f"the broker refused the offsets, since group {group} has a member by now. {_STOP}")
    return kafka_failure(error, f"committing offsets of {', '.join(topics)} as group {group}")
