"""The identities of the consumed topics: a position is valid for that log only."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka.admin import AdminClient

from processor.intake.subscription import SubscribedTopic
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import describe_existing, readable_topic_ids

log = logging.getLogger(__name__)


class ConsumedTopics:
    """Compares the identities with later ones, and with those in the metadata of committed offsets.

    librdkafka (2.16) continues at its old offset if a topic is recreated, and the broker refuses only an offset behind
    the end of the new log. Records before the old offset would be skipped, and the group would commit behind them.

    Args:
        group: of the processor.
        ids: topic ids by name, as they are when the topic is first consumed.
        topics: all topics of the group.
    """

    def __init__(self, group: str, ids: Mapping[str, str], topics: Iterable[SubscribedTopic] = ()) -> None:
        self._group = group
        self._ids = ids
        self._topics = tuple(topics)
        self._own = frozenset(topic.name for topic in self._topics if topic.own)
        self._redelivered = frozenset(topic.name for topic in self._topics if topic.redelivered_to_origin)
        self._partitions: dict[str, int] = {}

    @classmethod
    def look_up(cls, admin: AdminClient, group: str, topics: Iterable[SubscribedTopic]) -> ConsumedTopics:
        """Ask the broker; a missing topic isn't compared. Raises as `describe_existing`."""
        subscribed = tuple(topics)
        needed = describe_existing(admin, [topic.name for topic in subscribed if not topic.optional])
        optional = readable_topic_ids(admin, [topic.name for topic in subscribed if topic.optional])
        ids = {topic: str(described.topic_id) for topic, described in needed.items()}
        consumed = cls(group, {**ids, **optional}, subscribed)
        for topic, described in needed.items():
            consumed._compare_partitions(topic, len(described.partitions))
        return consumed

    @property
    def names(self) -> list[str]:
        """The topics to consume now."""
        return [topic.name for topic in self._topics if not self._is_absent(topic)]

    @property
    def absent(self) -> list[str]:
        """The optional topics that didn't exist, or that this user wasn't allowed to read, at the last look."""
        return [topic.name for topic in self._topics if self._is_absent(topic)]

    def is_own(self, topic: str) -> bool:
        """Return whether it is one of the group's retry or redelivery topics."""
        return topic in self._own

    def redeliver_to(self, topic: str) -> str | None:
        """Return `origin` if the lineage of its records counts although it is an input topic, None otherwise."""
        return "origin" if topic in self._redelivered else None

    def _is_absent(self, topic: SubscribedTopic) -> bool:
        return topic.optional and topic.name not in self._ids

    def appeared(self, ids: Mapping[str, str]) -> None:
        """Note the IDs of topics that were absent, or have others now."""
        # The broker watch may iterate over the former ones in its thread.
        self._ids = {**self._ids, **ids}

    def id_of(self, topic: str) -> str | None:
        """Return the ID that a consumed topic had when it was first consumed; None if it was missing."""
        return self._ids.get(topic)

    def recreated(self, admin: AdminClient) -> list[str]:
        """Compare with the present identities, and log what was added or deleted.

        Returns:
            The retry and redelivery topics that were recreated, whose IDs are the new ones from now on.

        Raises:
            ConfigurationError: an input topic was recreated; the process must stop.
            TransientError: the cluster can't be reached now; retry.
        """
        found = describe_existing(admin, self._ids)
        for topic in sorted(self._ids.keys() - found.keys()):
            advice = "" if self.is_own(topic) else ", or remove it from processor.topics"
            log.warning(
                "topic %s doesn't exist any more. The other topics are consumed. Create it again%s", topic, advice
            )
        changed = {}
        for topic, described in found.items():
            before, now = self._ids[topic], str(described.topic_id)
            if now != before:
                if not self.is_own(topic):
                    self._require_same(topic, before, now)
                changed[topic] = now
                self._partitions.pop(topic, None)
            self._compare_partitions(topic, len(described.partitions))
        self.appeared(changed)
        return sorted(changed)

    def _compare_partitions(self, topic: str, now: int) -> None:
        before = self._partitions.setdefault(topic, now)
        self._partitions[topic] = now
        if now > before:
            log.warning(
                "topic %s has %d partitions now, it had %d. The group consumes the new ones from their beginning, "
                "within a minute",
                topic,
                now,
                before,
            )

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
