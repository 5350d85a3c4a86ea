"""The identities of the consumed topics at the start: a position is valid for that log only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import topic_ids


class ConsumedTopics:
    """Compares the identities with later ones, and with those in the metadata of committed offsets.

    librdkafka (2.16) continues at its old offset if a topic is recreated, and the broker refuses only an offset behind
    the end of the new log. Records before the old offset would be skipped, and the group would commit behind them.

    Args:
        group: of the processor.
        ids: topic ids by name.
    """

    def __init__(self, group: str, ids: Mapping[str, str]) -> None:
        self._group = group
        self._ids = ids

    @classmethod
    def look_up(cls, admin: AdminClient, group: str, topics: Iterable[str]) -> ConsumedTopics:
        """Ask the broker; a missing topic isn't compared. Raises as `topic_ids`."""
        return cls(group, topic_ids(admin, topics))

    def id_of(self, topic: str) -> str | None:
        """Return the ID that a consumed topic had at the start; None if it was missing."""
        return self._ids.get(topic)

    def require_unchanged(self, admin: AdminClient) -> None:
        """Compare with the present identities; a deleted topic doesn't stop the others.

        Raises:
            ConfigurationError: a topic was recreated; the process must stop.
            TransientError: the cluster can't be reached now; retry.
        """
        for topic, now in topic_ids(admin, self._ids).items():
            self._require_same(topic, self._ids[topic], now)

    def require_committed_in(self, topic: str, topic_id: str | None) -> None:
        """Compare with the ID that the topic had when an offset was committed; None if the commit has no ID.

        Raises:
            ConfigurationError: the topic was recreated since.
        """
        now = self._ids.get(topic)
        if topic_id is not None and now is not None:
            self._require_same(topic, topic_id, now)

    def _require_same(self, topic: str, then: str, now: str) -> None:
        if then == now:
            return
        raise ConfigurationError(
            f"topic {topic} was recreated: its ID was {then} and is now {now}. The offsets of group {self._group} "
            "belong to the deleted topic and would skip records of the new one. Stop every processor of the group, "
            f"run `waitreg rewind --to-earliest --topic {topic}`, and start again"
        )
