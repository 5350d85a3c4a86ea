"""How far a Kafka Connect sink is behind a topic, for all who ask: its consumer group is all that tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wait_registry.kafka.clients import Admin
    from wait_registry.settings.kafka import KafkaSettings
    from wait_registry.settings.root import Settings


class ConnectLag(NamedTuple):
    """Offsets between what the group has committed and the log's end, transaction markers included.

    ``beyond`` are partitions, with what was committed and the log's end, whose log ends before what was committed.
    """

    group: str
    topic: str
    partitions: int
    committed: int
    offsets: int
    beyond: tuple[tuple[int, int, int], ...] = ()


def read_connect_lag(settings: Settings, admin: Admin) -> ConnectLag:
    """Ask how far ``sink.connect_group`` is behind the wait topic; errors as `read_group_lag`."""
    return read_group_lag(settings.kafka, admin, settings.sink.connect_group, settings.wait.topic)


def read_group_lag(kafka: KafkaSettings, admin: Admin, group: str, topic: str) -> ConnectLag:
    """Ask Kafka for a group's committed offsets and for the log's ends, open transactions included.

    Raises:
        ConfigurationError: no such topic, or no right to see it or the group (DESCRIBE).
        TransientError: no answer within ``kafka.request_timeout_s``; retry.
    """
    from wait_registry.kafka.cluster import describe_topic
    from wait_registry.kafka.committed_offsets import committed_offsets
    from wait_registry.kafka.positions import earliest_offsets, end_offsets

    numbers = range(describe_topic(admin, topic).partitions)
    # The ends last: what was committed before can't lie beyond them.
    begun = earliest_offsets(admin, topic, numbers)
    found = {place.partition: place.offset for place in committed_offsets(kafka, group, _all(topic, numbers))}
    ends = end_offsets(admin, topic, numbers, "read_uncommitted")
    return lag_of(group, topic, begun, found, ends)


def lag_of(
    group: str, topic: str, begun: dict[int, int], committed: dict[int, int], ends: dict[int, int]
) -> ConnectLag:
    """Add the partitions up; one that nothing was committed for has all its log ahead. Pure."""
    reached = {number: max(committed.get(number, -1), begun[number]) for number in ends}
    return ConnectLag(
        group=group,
        topic=topic,
        partitions=len(ends),
        committed=sum(committed.get(number, -1) >= 0 for number in ends),
        offsets=sum(max(0, ends[number] - reached[number]) for number in ends),
        beyond=tuple((number, reached[number], end) for number, end in sorted(ends.items()) if reached[number] > end),
    )


def lag_line(lag: ConnectLag) -> str:
    """Say in one line how old an answer from the view may be. Pure."""
    if not lag.committed:
        return (
            f"no Kafka Connect sink has brought the view of {lag.topic} yet, as far as group {lag.group} tells "
            "(sink.connect_group): an empty answer says nothing"
        )
    behind = f"{lag.offsets} offsets behind the log"
    return f"view of {lag.topic} by Kafka Connect: {behind}, by what group {lag.group} has committed"


def _all(topic: str, numbers: range) -> list[tuple[str, int]]:
    return [(topic, number) for number in numbers]
