"""Do the positions that were written down still fit the logs they are positions in? Read-only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from wait_registry.errors import ConfigurationError
from waitreg.commands.check_line import CheckLine, Standing

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

_VIEW = "position of the view"


def view_position(settings: Settings) -> Iterator[CheckLine]:
    """Check the sink's position in the wait topic as sink and sweeper do: same topic, within the log, not too old.

    Raises ConfigurationError or `sink.position.PositionTooOld`: their messages say what to do.
    """
    from sink.position import require_fresh
    from sink.progress import read_progress
    from sink.starting import log_ends, wait_start
    from wait_registry.kafka.clients import admin
    from wait_registry.kafka.topics import topic_config
    from wait_registry.postgres.connection import connect

    client, topic = admin(settings.kafka), settings.wait.topic
    with connect(settings.postgres, autocommit=True, application_name="waitreg doctor") as connection:
        recorded, _ = read_progress(connection, topic)
        if recorded is None:
            yield CheckLine(_VIEW, Standing.OK, f"none yet: the first sink reads {topic} from its beginning")
            return
        # Where something is recorded, this only compares.
        start = wait_start(connection, client, topic)
        ends = log_ends(connection, client, start.positions)
    require_fresh(start.positions, ends, int(topic_config(client, topic)["delete.retention.ms"]))
    behind = sum(ends.ends[name] - position.next_offset for name, position in start.positions.items())
    yield CheckLine(_VIEW, Standing.OK, f"{behind} offsets behind the end of {topic}")


def group_positions(settings: Settings) -> Iterator[CheckLine]:
    """Check the group's committed offsets as a processor does: made with this wait topic, and within the input topics.

    Raises ConfigurationError when the wait topic was made anew or grew since they were committed.
    """
    from confluent_kafka import Consumer, TopicPartition

    from processor.start_offsets import StartOffsets
    from processor.subscription import subscription
    from wait_registry.kafka.clients import admin, consumer_config
    from wait_registry.kafka.cluster import describe_topic, topic_names
    from wait_registry.kafka.requests import persistently

    client, group = admin(settings.kafka), settings.processor.group
    subject = f"offsets of group {group}"
    consumer = Consumer(consumer_config(settings.kafka, **{"group.id": group, "enable.auto.commit": False}))
    try:
        offsets = StartOffsets(describe_topic(client, settings.wait.topic), stopping=lambda: True)
        for topic in subscription(settings, "", topic_names(client)):
            partitions = [TopicPartition(topic, number) for number in range(describe_topic(client, topic).partitions)]
            # Of a group that is new to the broker, the coordinator is only being elected.
            starts = persistently(client, partial(offsets.of, consumer, partitions))
            _require_within_log(settings, topic, {start.partition: start.offset for start in starts})
            committed = sum(start.offset >= 0 for start in starts)
            yield CheckLine(subject, Standing.OK, f"{committed} of {len(starts)} partitions of {topic} have one")
    finally:
        consumer.close()


def _require_within_log(settings: Settings, topic: str, starts: dict[int, int]) -> None:
    from wait_registry.kafka.clients import admin
    from wait_registry.kafka.positions import earliest_offsets, end_offsets

    client, group = admin(settings.kafka), settings.processor.group
    first = earliest_offsets(client, topic, starts)
    ends = end_offsets(client, topic, starts, "read_uncommitted")
    for partition, offset in starts.items():
        if offset >= 0 and not first[partition] <= offset <= ends[partition]:
            raise ConfigurationError(
                f"group {group} has committed offset {offset} of {topic}[{partition}], whose log holds "
                f"{first[partition]} to {ends[partition]}: records were deleted unread, or the topic was made anew. "
                f"Choose where to go on: kafka-consumer-groups --bootstrap-server {settings.kafka.bootstrap_servers} "
                f"--group {group} --topic {topic}:{partition} --reset-offsets --to-earliest --execute"
            )
