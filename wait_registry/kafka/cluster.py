"""The identity of the cluster and of topics, on which wait IDs and recorded offsets rely."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from shlex import quote

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ClusterMetadata, TopicDescription

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.errors import is_unknown_topic
from wait_registry.kafka.requests import answer, answered, answers_of_existing, timeout_of

_READING = frozenset({AclOperation.READ, AclOperation.ALL})


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """A topic as it was created; a recreated topic has the same name and another ID (KIP-516)."""

    topic: str
    topic_id: str
    partitions: int


def cluster_id(admin: AdminClient) -> str:
    """Return the cluster's ID, which is part of every wait ID.

    Raises:
        ConfigurationError: the broker refuses us, or reports no cluster ID.
    """
    seen = _metadata(admin, "for its cluster ID")
    if not seen.cluster_id:
        raise ConfigurationError("the broker reports no cluster ID; brokers have one since 0.10.1")
    return str(seen.cluster_id)


def topic_names(admin: AdminClient) -> frozenset[str]:
    """Return the names of all topics that we may see."""
    return frozenset(_metadata(admin, "for its topics").topics)


def broker_ids(admin: AdminClient) -> list[int]:
    """Return the sorted IDs of the live brokers."""
    return sorted(_metadata(admin, "for its brokers").brokers)


def broker_addresses(admin: AdminClient) -> list[str]:
    """Return host:port of each live broker, in the order of their IDs."""
    brokers = _metadata(admin, "for its brokers").brokers
    return [f"{brokers[id].host}:{brokers[id].port}" for id in sorted(brokers)]


def _metadata(admin: AdminClient, what: str) -> ClusterMetadata:
    # Workaround: librdkafka 2.16 aborts the process in describe_cluster if the broker that answers knows of no live
    # broker, for instance because it was just fenced itself.
    doing = f"asking {_where(admin)} {what}"
    seen = answered(admin, lambda: admin.list_topics(timeout=timeout_of(admin)), doing)
    if not seen.brokers:
        raise TransientError(f"{doing} failed: the broker that answered knows of no live broker")
    return seen


def describe_topic(admin: AdminClient, topic: str) -> TopicIdentity:
    """Look a topic up.

    Raises:
        ConfigurationError: there is no such topic; the message has the command that creates it.
    """
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_of(admin))
    try:
        described = answer(admin, futures[topic], f"describing topic {topic}")
    except ConfigurationError as error:
        if not is_unknown_topic(error):
            raise
        raise no_such_topic(admin, topic) from error.__cause__
    return TopicIdentity(topic, str(described.topic_id), len(described.partitions))


def describe_existing(
    admin: AdminClient, topics: Iterable[str], optional: Collection[str] = ()
) -> dict[str, TopicDescription]:
    """Describe those topics that exist, of the optional ones only those that this user may see."""
    asked = list(topics)
    futures = admin.describe_topics(TopicCollection(asked), request_timeout=timeout_of(admin)) if asked else {}
    return answers_of_existing(admin, futures, "describing topic", optional)


def topic_ids(admin: AdminClient, topics: Iterable[str]) -> dict[str, str]:
    """Return the IDs of those topics that exist."""
    return {topic: str(described.topic_id) for topic, described in describe_existing(admin, topics).items()}


def readable_topic_ids(admin: AdminClient, topics: Iterable[str]) -> dict[str, str]:
    """Return the IDs of those topics that exist and that this user may read (KIP-430)."""
    asked = list(topics)
    if not asked:
        return {}
    futures = admin.describe_topics(
        TopicCollection(asked), include_authorized_operations=True, request_timeout=timeout_of(admin)
    )
    found = answers_of_existing(admin, futures, "describing topic", optional=asked)
    # Brokers before 2.3 name no operations at all.
    return {
        topic: str(described.topic_id)
        for topic, described in found.items()
        if not described.authorized_operations or not _READING.isdisjoint(described.authorized_operations)
    }


def may(admin: AdminClient, topic: str, operation: AclOperation) -> bool:
    """Return whether this user may do this with a topic (KIP-430); True if the broker is too old to say so.

    Raises:
        WaitRegistryError: as `answer`.
    """
    futures = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=timeout_of(admin)
    )
    granted = answer(admin, futures[topic], f"asking for the permissions on {topic}").authorized_operations
    # Brokers before 2.3 name no operations at all.
    return not granted or not {operation, AclOperation.ALL}.isdisjoint(granted)


def no_such_topic(admin: AdminClient, topic: str) -> ConfigurationError:
    """Return the error about a missing topic, with the command that creates it."""
    return ConfigurationError(
        f"topic {topic} doesn't exist. Create it: `waitreg topics create` (wait, dead letter and redelivery topics), "
        f"or kafka-topics --bootstrap-server {quote(_where(admin))} --create --topic {topic}"
    )


def identity_changed(recorded: TopicIdentity, now: TopicIdentity) -> str | None:
    """Return what changed since a topic's identity was recorded, or None if it is still the same topic.

    Another partition count moves keys to other partitions, where a tombstone would miss its wait record; another ID
    means that the recorded offsets describe a topic that was deleted.
    """
    if recorded.topic != now.topic:
        return f"the topic was {recorded.topic} and is now {now.topic}"
    if recorded.topic_id != now.topic_id:
        return f"topic {now.topic} was recreated: its ID was {recorded.topic_id} and is now {now.topic_id}"
    if recorded.partitions != now.partitions:
        return f"topic {now.topic} had {recorded.partitions} partitions and has {now.partitions} now"
    return None


def require_same_identity(recorded: TopicIdentity, now: TopicIdentity) -> None:
    """Refuse a wait topic that isn't the recorded one, or is used with another number of partitions.

    Raises:
        ConfigurationError: the service must stop; the message says what to do in either case.
    """
    changed = identity_changed(recorded, now)
    if changed is None:
        return
    if recorded.topic == now.topic and recorded.topic_id == now.topic_id:
        raise ConfigurationError(
            f"topic {now.topic} has been used with {recorded.partitions} partitions, but wait.partitions is now "
            f"{now.partitions}: keys would move away from the partitions of their wait records. Set "
            f"wait.partitions back to {recorded.partitions}. To get more, move to a new wait topic: docs/runbook.md, "
            '"Moving to a new wait topic".'
        )
    raise ConfigurationError(
        f"{changed}. The open registrations of the old topic are now only in Postgres. Leave its tables as they are, "
        'and follow docs/runbook.md, "Topic recreated by mistake".'
    )


def _where(admin: AdminClient) -> str:
    return str(getattr(admin, "bootstrap_servers", "the cluster"))
