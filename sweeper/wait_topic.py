"""Is the wait topic still the one that was recorded? Asked at the start, before every export and now and then."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import TopicIdentity, require_same_identity
from wait_registry.kafka.topics import topic_config
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.settings.topics import WaitTopicSettings


@dataclass(frozen=True, slots=True)
class WaitTopic:
    """What a sweep knows of the wait topic: its identity, and how long its tombstones last, ms."""

    identity: TopicIdentity
    delete_retention_ms: int


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """What the sink wrote down: the topic it reads, and how old its oldest position is, s."""

    identity: TopicIdentity
    staleness_s: float


def look_up(admin: Admin, wait: WaitTopicSettings) -> WaitTopic:
    """Ask the broker.

    Raises:
        ConfigurationError: as `describe_wait_topic`; or the topic has come to delete by age, which would delete what is
            unresolved.
        TransientError: the cluster can't be reached now; retry.
    """
    topic = wait.topic
    identity, config = describe_wait_topic(admin, topic, wait.partitions), topic_config(admin, topic)
    if config["cleanup.policy"] != "compact":
        raise ConfigurationError(
            f"topic {topic}: cleanup.policy is {config['cleanup.policy']}, expected compact: what is unresolved must "
            f"not age out. Mend: kafka-configs --bootstrap-server {admin.bootstrap_servers} --alter --topic {topic} "
            "--add-config cleanup.policy=compact"
        )
    return WaitTopic(identity, int(config["delete.retention.ms"]))


def recorded(connection: psycopg.Connection[TupleRow], topic: str) -> list[RecordedTopic]:
    """Ask Postgres which topic of this name the sink has been reading; none before its first start."""
    rows = connection.execute(QUERIES["recorded_topic"], {"topic": topic}).fetchall()
    return [RecordedTopic(TopicIdentity(topic, topic_id, count), age_s) for topic_id, count, age_s in rows]


def require_recorded(found: list[RecordedTopic], now: TopicIdentity) -> None:
    """Stop when the topic isn't the one the view was made from.

    Raises:
        ConfigurationError: recreated, or used with another `wait.partitions`.
    """
    for record in found:
        require_same_identity(record.identity, now)
