"""The wait topic as it is used: the first ``wait.partitions`` partitions, however many it has."""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import TopicIdentity, describe_topic, require_same_identity
from wait_registry.kafka.errors import is_unknown_topic
from wait_registry.kafka.positions import end_offsets


def describe_wait_topic(admin: AdminClient, topic: str, partitions: int) -> TopicIdentity:
    """Look the wait topic up.

    Partitions that were added later are not used: processors compute a key's partition from ``partitions``, so that a
    key stays where its earlier wait record is.

    Args:
        admin: the client to ask.
        topic: its name.
        partitions: how many are used, ``wait.partitions``.

    Returns:
        Its identity, with the partitions that are used.

    Raises:
        ConfigurationError: there is no such topic, it has fewer partitions, or an unused partition has records, since
            a client writes with another number and no service would read them.
    """
    return _used(admin, describe_topic(admin, topic), partitions)


def require_same_wait_topic(admin: AdminClient, recorded: TopicIdentity) -> None:
    """Look the wait topic up again, and refuse one that isn't the recorded one.

    Raises:
        ConfigurationError: deleted or recreated, or as `describe_wait_topic`; the service must stop.
    """
    try:
        now = describe_topic(admin, recorded.topic)
    except ConfigurationError as error:
        if not is_unknown_topic(error):
            raise
        raise ConfigurationError(
            f"topic {recorded.topic} (ID {recorded.topic_id}) was deleted. Don't create it again under this name: its "
            "open registrations are now only in Postgres, and a new topic wouldn't hold them. Follow docs/runbook.md, "
            '"Topic recreated by mistake".'
        ) from error.__cause__
    # The ID first, since the partitions of a recreated topic say nothing.
    require_same_identity(recorded, replace(now, partitions=recorded.partitions))
    _used(admin, now, recorded.partitions)


def _used(admin: AdminClient, now: TopicIdentity, partitions: int) -> TopicIdentity:
    if now.partitions < partitions:
        raise ConfigurationError(
            f"topic {now.topic} has {now.partitions} partitions, expected wait.partitions = {partitions} at least. Set "
            "wait.partitions of every service to the number that the topic was created with"
        )
    if now.partitions > partitions:
        _require_empty(admin, now, partitions)
    return replace(now, partitions=partitions)


def _require_empty(admin: AdminClient, now: TopicIdentity, used: int) -> None:
    ends = end_offsets(admin, now.topic, range(used, now.partitions), "read_uncommitted")
    written = [partition for partition, end in sorted(ends.items()) if end > 0]
    if written:
        raise ConfigurationError(
            f"topic {now.topic} has {now.partitions} partitions, and records in partition {written[0]}"
            f"{f' and {len(written) - 1} more' if written[1:] else ''}, expected none beyond wait.partitions = {used}: "
            "a client writes with another number of partitions, and no service would export its records. Give every "
            'processor the same wait.partitions, and follow docs/runbook.md, "Wait topic has grown".'
        )
