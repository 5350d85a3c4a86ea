"""The topics that records are sent to in transactions: looked up, never created; how much they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation

from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import describe_topic, may
from wait_registry.kafka.errors import code_of
from wait_registry.kafka.topics import topic_config
from wait_registry.records.topics import MAX_TOPIC_LENGTH, is_topic_name

# Record batch format v2 (KIP-98): 61 bytes per batch; a record's attributes, deltas, lengths and counts are variable
# integers of at most 5 bytes, 10 for the timestamp delta.
BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5
HEADER_OVERHEAD = 10
# A topic that doesn't exist, can't exist, or that the sweeper has no permission to see.
_OF_THIS_TOPIC = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)


@dataclass(frozen=True, slots=True)
class Target:
    """A topic to send to; ``partitions`` is 0 where it can't be written to, and ``problem`` says why.

    A ``compacted`` one takes no record without a key: the broker would refuse the whole transaction (INVALID_RECORD).
    """

    topic: str
    partitions: int
    max_message_bytes: int
    problem: str | None = None
    compacted: bool = False


def record_size(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """Return the size of a batch with this record alone and no compression, bytes, never less than it will be.

    A record that only compression would bring below the topic's limit counts as too large: its compressed size isn't
    known before it is sent, and a refused record costs the whole transaction.
    """
    size = BATCH_OVERHEAD + RECORD_OVERHEAD + len(key or b"") + len(value or b"") + HEADER_OVERHEAD * len(headers)
    if not headers:
        return size
    # An export measures each record: this takes a third of the time of a loop over the headers.
    names, contents = zip(*headers, strict=True)
    together = "".join(names)
    size += len(together) if together.isascii() else len(together.encode())
    return size + sum(map(len, filter(None, contents)))


class Targets:
    """Looks topics up and remembers them."""

    def __init__(self, admin: Admin) -> None:
        """Ask nothing yet; ``admin`` is asked once per topic."""
        self._admin = admin
        self._known: dict[str, Target] = {}

    def forget(self) -> None:
        """Have each topic looked up again."""
        self._known.clear()

    def __call__(self, topic: str) -> Target:
        """Return what is known of a topic; one that doesn't exist or may not be written to has a problem.

        Rows for other topics are exported all the same.

        Raises:
            WaitRegistryError: the cluster can't be reached, or refuses this client.
        """
        known = self._known.get(topic)
        if known is not None:
            return known
        if not is_topic_name(topic):
            return Target(topic, 0, 0, f"{topic[:MAX_TOPIC_LENGTH]!r} ({len(topic)} characters) is not a topic name")
        known = self._known[topic] = self._look_up(topic)
        return known

    def _look_up(self, topic: str) -> Target:
        try:
            identity = describe_topic(self._admin, topic)
            config = topic_config(self._admin, topic)
            # The error of a transaction that one topic refuses does not name the topic.
            writable = may(self._admin, topic, AclOperation.WRITE)
        except WaitRegistryError as error:
            if code_of(error) not in _OF_THIS_TOPIC:
                raise
            return Target(topic, 0, 0, str(error))
        if not writable:
            return Target(topic, 0, 0, f"{topic} may not be written to. Grant the user of kafka.security WRITE on it")
        compacted = "compact" in config["cleanup.policy"]
        return Target(topic, identity.partitions, int(config["max.message.bytes"]), compacted=compacted)
