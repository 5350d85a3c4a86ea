"""The topics this system owns: made as they must be, and checked at every start."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from shlex import quote

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from wait_registry.diagnosis import Diagnosis, log_warnings, refuse_errors
from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.cluster import broker_ids, describe_existing, no_such_topic, topic_names
from wait_registry.kafka.errors import cause_of, code_of
from wait_registry.kafka.requests import answer, answers_of_existing, persistently, timeout_of
from wait_registry.kafka.topic_rules import TopicState, check_mark_retention, check_topic, missing, unseen
from wait_registry.kafka.topic_specs import TopicRole, TopicUser, topic_specs
from wait_registry.settings.relations import Service
from wait_registry.settings.topic_relations import redelivery_name_problems, topic_problems
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)


def create_topics(settings: Settings, input_partitions: int | None = None) -> list[str]:
    """Create the wait topic and the dead letter and redelivery topics that the settings name; existing ones stay.

    Args:
        settings: what they must be.
        input_partitions: partitions of missing input topics, which are created too, with the broker's defaults.

    Returns:
        The names of those that were created now.

    Raises:
        ConfigurationError: services would refuse the settings, or the broker refuses (permission, more replicas than
            brokers); the message says what to do.
    """
    refuse_errors(topic_problems(settings))
    client = open_admin(settings.kafka)
    specs = [spec for spec in topic_specs(settings) if spec.owned]
    new = [_new_topic(spec.topic, spec.partitions, settings, spec.creation_config) for spec in specs]
    if input_partitions is not None:
        new += [_new_topic(topic, input_partitions, settings, {}) for topic in settings.processor.topics]
    futures = client.create_topics(new, request_timeout=timeout_of(client))
    created = [one.topic for one in new if _created(client, one, futures[one.topic])]
    await_leaders(client, created)
    return created


def check_topics(settings: Settings, service: TopicUser | None = None) -> list[Diagnosis]:
    """Compare the topics with what they must be.

    Args:
        settings: what they must be.
        service: check only the topics that this service uses; all that the settings name when absent.

    Returns:
        A diagnosis per topic and rule, satisfied rules included, each with the command that fixes it.

    Raises:
        ConfigurationError: as of `topic_problems`; a command that fixes such a topic could harm another owner's.
    """
    refuse_errors(topic_problems(settings))
    client = open_admin(settings.kafka)
    names = persistently(client, lambda: topic_names(client))
    specs = topic_specs(settings, service, names)
    optional = {spec.topic for spec in specs if not spec.required}
    # A topic that this user may not describe isn't among the names.
    asked = [spec.topic for spec in specs if spec.required or spec.topic in names]
    states, existing = persistently(client, lambda: _look_up(client, asked, optional))
    # For the other services, the check of the settings reports it.
    names_checked = redelivery_name_problems(settings) if service in (None, "redrive") else ()
    found = [replace(one, subject="redelivery topics", id="topic.redelivery.name") for one in names_checked]
    for spec in specs:
        state = states.get(spec.topic)
        bootstrap = quote(settings.kafka.bootstrap_servers)  # a list may have blanks in it
        if state:
            found += check_topic(spec, state, bootstrap)
        elif spec.topic in optional and spec.topic in names:
            found.append(unseen(spec))
        else:
            found.append(missing(spec, bootstrap, existing))
        if state and spec.role is TopicRole.OPERATIONS:
            named = [one.topic for one in specs if one.role is TopicRole.DEAD_LETTER]
            dead_letters = {topic: states[topic] for topic in named if topic in states}
            found.append(check_mark_retention(spec, state, dead_letters, settings.sweeper.retention_days, bootstrap))
    return found


def require_topics(settings: Settings, service: Service | None = None) -> None:
    """Refuse topics that would break a guarantee, and log warnings.

    Raises:
        ConfigurationError: lists every error with the command that fixes it.
    """
    found = check_topics(settings, service)
    log_warnings(_by_message(found), log)
    refuse_errors(found)


def _by_message(found: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """Yield one diagnosis for all topics of which it is true: most clusters have one replication factor."""
    equal: dict[tuple[str, str, str], list[Diagnosis]] = {}
    for one in found:
        equal.setdefault((one.severity, one.message, one.fix), []).append(one)
    for first, *others in equal.values():
        names = ", ".join(one.subject.removeprefix("topic ") for one in (first, *others))
        yield replace(first, subject=f"topics {names}") if others else first


def topic_config(admin: AdminClient, topic: str) -> dict[str, str]:
    """Read a topic's effective configuration, defaults of the broker included."""
    configs = _read_configs(admin, [topic])
    if topic not in configs:
        raise no_such_topic(admin, topic)
    return configs[topic]


def broker_config(admin: AdminClient) -> dict[str, str]:
    """Read the configuration of one of the brokers."""
    broker = ConfigResource(ResourceType.BROKER, str(broker_ids(admin)[0]))
    (future,) = admin.describe_configs([broker], request_timeout=timeout_of(admin)).values()
    entries = answer(admin, future, "reading the configuration of a broker")
    return {name: str(entry.value) for name, entry in entries.items()}


def delete_retention_ms(admin: AdminClient, topic: str) -> int:
    """Return how long a topic keeps a tombstone at least, ms.

    The topic's own value, not the setting, since compaction follows it.
    """
    return int(topic_config(admin, topic)["delete.retention.ms"])


def _new_topic(topic: str, partitions: int, settings: Settings, config: Mapping[str, str]) -> NewTopic:
    replicas = settings.wait.replication_factor
    return NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(config))


def _created(client: AdminClient, new: NewTopic, future: Future[None]) -> bool:
    try:
        answer(client, future, f"creating topic {new.topic}")
    except WaitRegistryError as error:
        cause = cause_of(error)
        if code_of(error) == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        if cause is not None and code_of(error) == KafkaError.INVALID_REPLICATION_FACTOR:
            raise ConfigurationError(
                f"topic {new.topic} can't have {new.replication_factor} replicas: {cause.str().rstrip('.')}. "
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

    def require() -> None:
        described = describe_existing(client, topics)
        for topic in topics:
            if topic not in described or any(partition.leader is None for partition in described[topic].partitions):
                raise TransientError(f"topic {topic} was created and isn't ready: it has partitions without a leader")

    persistently(client, require)


def _look_up(
    client: AdminClient, topics: list[str], optional: Collection[str]
) -> tuple[dict[str, TopicState], frozenset[str]]:
    """Return the state of each topic, and if one is missing the names of all existing ones.

    Raises:
        TransientError: a topic is listed and can't be described, since it is new and not all brokers know it.
    """
    states = read_states(client, topics, optional)
    existing = topic_names(client) if len(states) < len(topics) else frozenset()
    for topic in topics:
        if topic not in states and topic in existing and topic not in optional:
            raise TransientError(f"topic {topic} is new, and the broker that answered doesn't know it yet")
    return states, existing


def read_states(client: AdminClient, topics: list[str], optional: Collection[str] = ()) -> dict[str, TopicState]:
    """Return the state of each topic that exists, of the optional ones only where this user may see it."""
    described = describe_existing(client, topics, optional)
    configs = _read_configs(client, described, optional)
    # A topic that was deleted between the two requests is missing.
    return {
        topic: TopicState(len(found.partitions), min(len(p.replicas) for p in found.partitions), configs[topic])
        for topic, found in described.items()
        if topic in configs
    }


def _read_configs(
    client: AdminClient, topics: Iterable[str], optional: Collection[str] = ()
) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    futures = client.describe_configs(resources, request_timeout=timeout_of(client)) if resources else {}
    found = answers_of_existing(client, futures, "reading the configuration of topic", optional)
    return {topic: {name: str(entry.value) for name, entry in entries.items()} for topic, entries in found.items()}
