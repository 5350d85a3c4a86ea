"""How far a Kafka Connect sink is behind its topics: its consumer group is the only source of this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.settings.kafka import KafkaSettings
from waitreg.connect.roles import sink_group, sink_topics
from waitreg.connect.state import ConnectorState

# `status` and `watch` show lags together with the rest, which must not wait long for them.
_LIMIT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ConnectLag:
    """A group's place in a topic, by partition number.

    ``reached`` is what the group has committed, or the log's start if that is later; ``ends`` include transaction
    markers. ``committed`` counts the partitions for which it has committed anything.
    """

    group: str
    topic: str
    reached: Mapping[int, int]
    ends: Mapping[int, int]
    committed: int

    @property
    def offsets(self) -> int:
        """How many offsets are left to the ends."""
        return sum(max(0, end - self.reached[number]) for number, end in self.ends.items())

    @property
    def beyond(self) -> list[tuple[int, int, int]]:
        """Partitions whose log ends before what was committed, with both offsets."""
        ends = sorted(self.ends.items())
        return [(number, self.reached[number], end) for number, end in ends if self.reached[number] > end]


def read_group_lag(kafka: KafkaSettings, client: Admin, group: str, topic: str) -> ConnectLag:
    """Ask Kafka for a group's committed offsets and for the log's ends, open transactions included.

    Raises:
        ConfigurationError: no such topic, or no permission to see it or the group (DESCRIBE).
        TransientError: no answer within ``kafka.request_timeout_s``; retry.
    """
    numbers = range(describe_topic(client, topic).partitions)
    # The ends last: what was committed before can't lie beyond them.
    begun = earliest_offsets(client, topic, numbers)
    committed = committed_offsets(kafka, group, [(topic, number) for number in numbers])
    ends = end_offsets(client, topic, numbers, "read_uncommitted")
    return lag_of(group, topic, begun, {place.partition: place.offset for place in committed}, ends)


def lag_of(
    group: str, topic: str, begun: dict[int, int], committed: dict[int, int], ends: dict[int, int]
) -> ConnectLag:
    """Compare offsets by partition; one without a committed offset has all its log ahead. Pure."""
    reached = {number: max(committed.get(number, -1), begun[number]) for number in ends}
    return ConnectLag(group, topic, reached, ends, sum(committed.get(number, -1) >= 0 for number in ends))


def lag_line(lag: ConnectLag) -> str:
    """Say in one line how old an answer from the tables may be. Pure."""
    if not lag.committed:
        return (
            f"no Kafka Connect sink has written the tables of {lag.topic} yet: group {lag.group} (sink.connect_group) "
            "has committed nothing, so an empty answer means nothing"
        )
    return f"tables of {lag.topic} by Kafka Connect: group {lag.group} is {lag.offsets} offsets behind the log"


def sink_lags(kafka: KafkaSettings, connectors: Iterable[ConnectorState]) -> tuple[dict[str, int], str | None]:
    """Return the lag of each sink by its name, and why one is missing; a cluster that doesn't answer delays little."""
    kafka = kafka.model_copy(update={"request_timeout_s": min(kafka.request_timeout_s, _LIMIT_S)})
    client: Admin | None = None
    lags: dict[str, int] = {}
    trouble = None
    for connector in connectors:
        group = sink_group(connector.name, connector.config)
        topics = sink_topics(connector.config) if connector.kind == "sink" else []
        try:
            if topics:
                client = client or admin(kafka)
                lags[connector.name] = sum(read_group_lag(kafka, client, group, topic).offsets for topic in topics)
        except WaitRegistryError as error:
            trouble = f"the lag of {connector.name} is unknown: {error}"
            if isinstance(error, TransientError):
                break
    return lags, trouble
