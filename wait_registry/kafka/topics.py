"""The topics this system owns: made as they must be, and checked at every start."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from wait_registry.diagnosis import Diagnosis, log_warnings, refuse_errors
from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.cluster import no_such_topic, topic_names
from wait_registry.kafka.errors import cause_of, is_unknown_topic
from wait_registry.kafka.requests import answer, persistently, timeout_of
from wait_registry.kafka.topic_rules import TopicState, check_topic, missing
from wait_registry.kafka.topic_specs import TopicSpec, topic_specs
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings

__all__ = ["check_topics", "create_topics", "require_topics", "topic_config"]

log = logging.getLogger(__name__)


def create_topics(settings: Settings) -> list[str]:
    """Make the wait topic and the dead letter and redelivery topics that the settings name; existing ones stay.

    Returns:
        The names of those that were made now.

    Raises:
        ConfigurationError: the broker refuses (permission, more replicas than brokers); the message says what to do.
        TransientError: the cluster can't be reached now; retry.
    """
    client = open_admin(settings.kafka)
    specs = [spec for spec in topic_specs(settings) if spec.owned]
    futures = client.create_topics([_new_topic(spec) for spec in specs], request_timeout=timeout_of(client))
    made = [spec for spec in specs if _created(client, spec, futures[spec.topic])]
    names = [spec.topic for spec in made]
    await_leaders(client, names)
    return names


def check_topics(settings: Settings, service: Service | None = None) -> list[Diagnosis]:
    """Compare the topics with what they must be.

    Args:
        settings: what they must be.
        service: check only the topics that this service uses; all that the settings name when absent.

    Returns:
        A diagnosis per topic and rule, satisfied rules included, each with the command that fixes it.

    Raises:
        ConfigurationError: the broker refuses us.
        TransientError: the cluster can't be reached now; retry.
    """
    client = open_admin(settings.kafka)
    specs = topic_specs(settings, service)
    states, existing = persistently(client, lambda: _look_up(client, [spec.topic for spec in specs]))
    found: list[Diagnosis] = []
    for spec in specs:
        state = states.get(spec.topic)
        bootstrap = settings.kafka.bootstrap_servers
        found += check_topic(spec, state, bootstrap) if state else [missing(spec, bootstrap, existing)]
    return found


def require_topics(settings: Settings, service: Service | None = None) -> None:
    """Refuse topics that would break a guarantee, and log warnings.

    Raises:
        ConfigurationError: lists every error with the command that fixes it.
        TransientError: the cluster can't be reached now; retry.
    """
    found = check_topics(settings, service)
    log_warnings(found, log)
    refuse_errors(found)


def topic_config(admin: AdminClient, topic: str) -> dict[str, str]:
    """Read a topic's effective configuration, defaults of the broker included; errors as `check_topics`."""
    configs = _read_configs(admin, [topic])
    if topic not in configs:
        raise no_such_topic(admin, topic)
    return configs[topic]


def delete_retention_ms(admin: AdminClient, topic: str) -> int:
    """Return how long a topic keeps a tombstone at least, ms; errors as `topic_config`.

    The topic's own value, not the setting, since compaction follows it.
    """
    return int(topic_config(admin, topic)["delete.retention.ms"])


def _new_topic(spec: TopicSpec) -> NewTopic:
    return NewTopic(
        spec.topic,
        num_partitions=spec.partitions,
        replication_factor=spec.replication_factor,
        config=dict(spec.creation_config),
    )


def _created(client: AdminClient, spec: TopicSpec, future: object) -> bool:
    try:
        answer(client, future, f"creating topic {spec.topic}")  # type: ignore[arg-type]
    except WaitRegistryError as error:
        cause = cause_of(error)
        if cause is not None and cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        if cause is not None and cause.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            raise ConfigurationError(
                f"topic {spec.topic} can't have {spec.replication_factor} replicas: {cause.str().rstrip('.')}. "
                "Set wait.replication_factor (and wait.min_insync_replicas) to what the cluster has brokers for; "
                "below 3 and 2 a lost disk can lose registrations."
            ) from error
        raise
    return True


def await_leaders(client: AdminClient, topics: list[str]) -> None:
    """Wait until every partition of new topics has a leader; the broker answers before the election.

    Raises:
        TransientError: some still have none; retry.
    """

    def ask() -> None:
        futures = client.describe_topics(TopicCollection(topics), request_timeout=timeout_of(client))
        for topic, future in futures.items():
            described = _if_there(client, future, f"describing topic {topic}")
            if described is None or any(partition.leader is None for partition in described.partitions):
                raise TransientError(
                    f"topic {topic} was created and isn't ready yet: it has partitions without a leader"
                )

    if topics:
        persistently(client, ask)


def _look_up(client: AdminClient, topics: list[str]) -> tuple[dict[str, TopicState], frozenset[str]]:
    """Return the state of each topic, and if one is missing the names of all existing ones.

    Raises:
        TransientError: a topic is listed and can't be described, since it is new and not all brokers know it.
    """
    states = read_states(client, topics)
    existing = topic_names(client) if len(states) < len(topics) else frozenset()
    for topic in topics:
        if topic not in states and topic in existing:
            raise TransientError(f"topic {topic} is new, and the broker that answered doesn't know it yet")
    return states, existing


def read_states(client: AdminClient, topics: list[str]) -> dict[str, TopicState]:
    """Return the state of each topic that exists."""
    descriptions = client.describe_topics(TopicCollection(topics), request_timeout=timeout_of(client)) if topics else {}
    found: dict[str, tuple[int, int]] = {}
    for topic, future in descriptions.items():
        described = _if_there(client, future, f"describing topic {topic}")
        if described is not None:
            found[topic] = (len(described.partitions), min(len(p.replicas) for p in described.partitions))
    configs = _read_configs(client, found)
    # A topic that was deleted between the two requests is missing.
    return {topic: TopicState(*shape, configs[topic]) for topic, shape in found.items() if topic in configs}


def _read_configs(client: AdminClient, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    futures = client.describe_configs(resources, request_timeout=timeout_of(client)) if resources else {}
    configs: dict[str, dict[str, str]] = {}
    for resource, future in futures.items():
        entries = _if_there(client, future, f"reading the configuration of topic {resource.name}")
        if entries is not None:
            configs[resource.name] = {name: str(entry.value) for name, entry in entries.items()}
    return configs


def _if_there(client: AdminClient, future: Future[Any], doing: str) -> Any:
    """Wait for an answer about a topic; None if it doesn't exist."""
    try:
        return answer(client, future, doing)
    except ConfigurationError as error:
        if is_unknown_topic(error):
            return None
        raise
