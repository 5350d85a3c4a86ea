"""The topics that are exported to: looked up once a task, never created by an export."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation

from sweeper.outgoing import Target
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.kafka.topics import topic_config
from wait_registry.records.topics import MAX_TOPIC_LENGTH, is_topic_name

# A topic that isn't there, can't be there, or that we have no right to see.
_OF_THIS_TOPIC = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)
_WRITING = frozenset({AclOperation.WRITE, AclOperation.ALL})


class Targets:
    """Looks topics up and remembers them."""

    def __init__(self, admin: Admin) -> None:
        """Args: admin: asked once a topic."""
        self._admin = admin
        self._known: dict[str, Target] = {}

    def __call__(self, topic: str) -> Target:
        """Return what is known of a topic; one that doesn't exist or may not be written to comes with the problem.

        Rows for other topics go on.

        Raises:
            WaitRegistryError: the cluster can't be reached, or refuses us altogether.
        """
        if not is_topic_name(topic):
            return Target(topic, 0, 0, f"{topic[:MAX_TOPIC_LENGTH]!r} ({len(topic)} characters) is no topic's name")
        if topic not in self._known:
            self._known[topic] = self._look_up(topic)
        return self._known[topic]

    def _look_up(self, topic: str) -> Target:
        try:
            identity = describe_topic(self._admin, topic)
            config = topic_config(self._admin, topic)
            writable = self._may_write(topic)
        except WaitRegistryError as error:
            if not _is_of_this_topic(error):
                raise
            return Target(topic, 0, 0, str(error))
        if not writable:
            return Target(topic, 0, 0, f"{topic} may not be written to. Grant the user of kafka.security WRITE on it")
        compacted = "compact" in config["cleanup.policy"]
        return Target(topic, identity.partitions, int(config["max.message.bytes"]), compacted=compacted)

    def _may_write(self, topic: str) -> bool:
        """Ask for our rights (KIP-430): the error of a transaction that one topic refuses does not name it."""
        futures = self._admin.describe_topics(
            TopicCollection([topic]), include_authorized_operations=True, request_timeout=timeout_of(self._admin)
        )
        granted = answer(self._admin, futures[topic], f"asking for the rights on {topic}").authorized_operations
        # Brokers that don't tell (before 2.3) name none at all.
        return not granted or not _WRITING.isdisjoint(granted)


def _is_of_this_topic(error: BaseException | None) -> bool:
    while error is not None:
        cause = error.args[0] if isinstance(error, KafkaException) and error.args else None
        if isinstance(cause, KafkaError) and cause.code() in _OF_THIS_TOPIC:
            return True
        error = error.__cause__
    return False
