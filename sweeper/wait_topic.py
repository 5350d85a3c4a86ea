"""The wait topic as a sweep finds it: asked for at the start, before every export and at intervals."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.tail_reader import LogPartition
from wait_registry.kafka.topics import topic_config
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.settings.topics import WaitTopicSettings
from wait_registry.settings.tree import Settings


@dataclass(frozen=True, slots=True)
class WaitTopic:
    """What a sweep knows of the wait topic: its identity, and how long its tombstones remain, ms."""

    identity: TopicIdentity
    delete_retention_ms: int


def wait_log(settings: Settings, partition: int) -> LogPartition:
    """Return what the tail of a partition is read from."""
    wait = settings.wait
    return LogPartition(
        settings.kafka, wait.topic, partition, settings.sweeper.tail_timeout_s, f"waitreg.sweep.{wait.topic}"
    )


def look_up(admin: Admin, wait: WaitTopicSettings) -> WaitTopic:
    """Ask the broker.

    Raises:
        ConfigurationError: as `describe_wait_topic`; or the topic now deletes by age, which would delete open
            registrations.
        TransientError: the cluster can't be reached now; retry.
    """
    topic = wait.topic
    identity, config = describe_wait_topic(admin, topic, wait.partitions), topic_config(admin, topic)
    if config["cleanup.policy"] != "compact":
        raise ConfigurationError(
            f"topic {topic}: cleanup.policy is {config['cleanup.policy']}, expected compact: open registrations must "
            f"not be deleted by age. Fix: kafka-configs --bootstrap-server {quote(admin.bootstrap_servers)} --alter "
            f"--topic {topic} --add-config cleanup.policy=compact"
        )
    return WaitTopic(identity, int(config["delete.retention.ms"]))
