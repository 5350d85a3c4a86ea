"""The wait topic as it is used: ``wait.partitions`` of its partitions, whatever it has grown to since."""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import TopicIdentity, describe_topic, require_same_identity
from wait_registry.kafka.errors import is_unknown_topic
from wait_registry.kafka.positions import end_offsets


def describe_wait_topic(admin: AdminClient, topic: str, partitions: int) -> TopicIdentity:
    """Look the wait topic up.

    Partitions that were added to it are nobody's: processors compute a key's partition from ``partitions``, so that it
    stays where its earlier wait record is.

    Args:
        admin: asked.
        topic: its name.
        partitions: how many are used, ``wait.partitions``.

    Returns:
        Its identity, with the partitions that are used.

    Raises:
        ConfigurationError: there is no such topic, it has fewer partitions, or records stand in those beyond: somebody
            writes with another number, and nobody here would read that.
        TransientError: the cluster can't be reached now; retry.
    """
    return _used(admin, describe_topic(admin, topic), partitions)


def require_same_wait_topic(admin: AdminClient, recorded: TopicIdentity) -> None:
    """Look the wait topic up again, and stop when it isn't the one that was written down any more.

    Raises:
        ConfigurationError: deleted or recreated, or as `describe_wait_topic`; the service must stop.
        TransientError: the cluster can't be reached now; retry.
    """
    try:
        now = describe_topic(admin, recorded.topic)
    except ConfigurationError as error:
        if not is_unknown_topic(error):
            raise
        raise ConfigurationError(
            f"topic {recorded.topic} is gone: it was there (id {recorded.topic_id}) and has been deleted since. Don't "
            "make it again under this name: what stood unfinished in it can only be read from Postgres now, and a new "
            'log would not hold it. The way on is in docs/runbook.md, "Topic recreated by mistake".'
        ) from error.__cause__
    # Its id first: the partitions of one that was made anew are another matter.
    require_same_identity(recorded, replace(now, partitions=recorded.partitions))
    _used(admin, now, recorded.partitions)


def _used(admin: AdminClient, now: TopicIdentity, partitions: int) -> TopicIdentity:
    if now.partitions < partitions:
        raise ConfigurationError(
            f"topic {now.topic} has {now.partitions} partitions, expected wait.partitions = {partitions} at least. Set "
            "wait.partitions, for every service, to the number that the topic was made with"
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
            "somebody writes with another number of partitions, and what stands there would never be exported. Give "
            'every processor the same wait.partitions; the way on is in docs/runbook.md, "Wait topic has grown".'
        )
