"""How far a Kafka Connect sink is behind its topics: its consumer group is the only source of this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.roles import sink_group, sink_topics
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.settings.kafka import KafkaSettings

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
            f"no Kafka Connect sink has written the tables of {lag.topic} yet, by what group {lag.group} has committed "
            "(sink.connect_group): an empty answer says nothing"
        )
    behind = f"{lag.offsets} offsets behind the log"
    return f"view of {lag.topic} by Kafka Connect: {behind}, by what group {lag.group} has committed"


def _all(topic: str, numbers: range) -> list[tuple[str, int]]:
    return [(topic, number) for number in numbers]


# Lags are shown with the rest, which must not wait long for them.
_PATIENCE_S: Final = 5.0


class SinkLags:
    """The lags of sink connectors, as far as they are known; a cluster that doesn't answer holds nothing up."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka.model_copy(update={"request_timeout_s": min(kafka.request_timeout_s, _PATIENCE_S)})
        self._admin: Admin | None = None
        self.trouble: str | None = None

    def of(self, connectors: Iterable[ConnectorState]) -> dict[str, int]:
        """Return the lag of each sink among these by name; ``trouble`` says afterwards why one is missing."""
        lags: dict[str, int] = {}
        self.trouble = None
        for connector in connectors:
            try:
                lag = self._of(connector) if connector.kind == "sink" else None
            except WaitRegistryError as error:
                self.trouble = f"the lag of {connector.name} can't be had: {error}"
                if isinstance(error, TransientError):
                    break
                continue
            if lag is not None:
                lags[connector.name] = lag
        return lags

    def _of(self, connector: ConnectorState) -> int | None:
        if self._admin is None:
            self._admin = admin(self._kafka)
        return sink_lag(self._kafka, self._admin, connector)


def other_groups(connectors: Iterable[Connector], wait_topic: str, expected: str) -> Iterator[str]:
    """Yield a sentence for each sink of the wait topic whose group isn't the one that the settings name. Pure."""
    for connector in connectors:
        group = sink_group(connector.name, connector.config)
        if wait_topic in sink_topics(connector.config) and group != expected:
            yield (
                f"{connector.name} reads {wait_topic} as group {group}, sink.connect_group is {expected}: if it keeps "
                f"the view, set sink.connect_group={group}, by which doctor and query judge how fresh that is"
            )


def sink_lag(kafka: KafkaSettings, admin: Admin, connector: ConnectorState) -> int | None:
    """Count the offsets between what a sink has committed and the ends of its topics.

    Args:
        kafka, admin: how the cluster is asked.
        connector: a sink.

    Returns:
        Offsets, markers of transactions among them; None for a connector that names no topics.

    Raises:
        TransientError: the cluster doesn't answer now.
        ConfigurationError: we may not see the group, or a topic is missing.
    """
    group, topics = sink_group(connector.name, connector.config), sink_topics(connector.config)
    return sum(read_group_lag(kafka, admin, group, topic).offsets for topic in topics) if topics else None
