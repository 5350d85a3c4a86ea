"""How far a sink connector's consumer group is behind its topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.connector_state import ConnectorState
from wait_registry.cli.connect.lag_lines import read_group_lag
from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.settings.kafka import KafkaSettings

OWN_GROUP: Final = "consumer.override.group.id"
# Lags are told beside the rest, which must not wait long for them.
_PATIENCE_S: Final = 5.0


class SinkLags:
    """The lags of sink connectors, as far as they can be had; a cluster that doesn't tell keeps nobody waiting."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka.model_copy(update={"request_timeout_s": min(kafka.request_timeout_s, _PATIENCE_S)})
        self._admin: Admin | None = None
        self.trouble: str | None = None

    def of(self, connectors: Iterable[ConnectorState]) -> dict[str, int]:
        """Return the lag of each sink among these by name; ``trouble`` says afterwards why one is left out."""
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


def sink_group(name: str, config: Mapping[str, str]) -> str:
    """Return the consumer group of a sink connector."""
    return config.get(OWN_GROUP) or f"connect-{name}"


def other_groups(connectors: Iterable[Connector], wait_topic: str, expected: str) -> Iterator[str]:
    """Yield a sentence for each sink of the wait topic whose group isn't the one that the settings name. Pure."""
    for connector in connectors:
        group = sink_group(connector.name, connector.config)
        if wait_topic in sink_topics(connector.config) and group != expected:
            yield (
                f"{connector.name} reads {wait_topic} as group {group}, sink.connect_group is {expected}: if it keeps "
                f"the view, set sink.connect_group={group}, by which doctor and query tell how fresh that is"
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


def sink_topics(config: Mapping[str, str]) -> list[str]:
    """Return the topics that a sink connector lists."""
    return [topic.strip() for topic in config.get("topics", "").split(",") if topic.strip()]
