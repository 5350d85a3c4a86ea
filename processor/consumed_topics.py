"""Which topics stood behind the consumed names at the start: a position describes that log, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import topic_ids


class ConsumedTopics:
    """Compares them with those of later, and with those that committed offsets were made in.

    librdkafka (2.16) goes on at its old offset when a topic was deleted and made anew, and the broker minds only where
    the new log is shorter; what stands before that offset would be passed over, and the group commit behind it.

    Args:
        group: of the processor.
        ids: topic ids by name.
    """

    def __init__(self, group: str, ids: Mapping[str, str]) -> None:
        self._group = group
        self._ids = ids

    @classmethod
    def look_up(cls, admin: AdminClient, group: str, topics: Iterable[str]) -> ConsumedTopics:
        """Ask the broker; a topic that isn't there is compared with nothing. Raises as `topic_ids`."""
        return cls(group, topic_ids(admin, topics))

    def id_of(self, topic: str) -> str | None:
        """Return the id that a consumed topic had; None when it wasn't there."""
        return self._ids.get(topic)

    def require_unchanged(self, admin: AdminClient) -> None:
        """Look again; a topic that is gone stops nobody, since the others go on.

        Raises:
            ConfigurationError: one was recreated; the process must stop.
            TransientError: the cluster can't be reached now; retry.
        """
        for topic, now in topic_ids(admin, self._ids).items():
            self._require_same(topic, self._ids[topic], now)

    def require_committed_in(self, topic: str, topic_id: str | None) -> None:
        """Take the id that the topic had when an offset was committed; None when the commit doesn't say.

        Raises:
            ConfigurationError: it was recreated since.
        """
        now = self._ids.get(topic)
        if topic_id is not None and now is not None:
            self._require_same(topic, topic_id, now)

    def _require_same(self, topic: str, then: str, now: str) -> None:
        if then == now:
            return
        raise ConfigurationError(
            f"topic {topic} was recreated: its ID was {then} and is now {now}. The offsets of group {self._group} "
            "belong to the log that is gone, and would pass records of the new one over. Stop every processor of the "
            "group, have it begin at the beginning with kafka-consumer-groups --reset-offsets --group "
            f"{self._group} --topic {topic} --to-earliest --execute, and start again"
        )
