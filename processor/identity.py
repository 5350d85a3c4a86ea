"""Which wait topic a group's committed offsets rely on, written into the metadata of every commit.

The processor has no database of its own, and an offset is only worth something together with the wait topic in which
the records below it are registered.
"""

from __future__ import annotations

from wait_registry.kafka.cluster import TopicIdentity

PREFIX = "waitreg1"
SEPARATOR = ";"


def encode_identity(identity: TopicIdentity) -> str:
    """Return the metadata string: ``waitreg1;{wait topic};{topic id};{partition count}``."""
    return SEPARATOR.join((PREFIX, identity.topic, identity.topic_id, str(identity.partitions)))


def decode_identity(metadata: str | None) -> TopicIdentity | None:
    """Read a metadata string; None when there is none, or another program wrote it."""
    parts = (metadata or "").split(SEPARATOR)
    if len(parts) != 4 or parts[0] != PREFIX or not parts[3].isdecimal():
        return None
    return TopicIdentity(parts[1], parts[2], int(parts[3]))
