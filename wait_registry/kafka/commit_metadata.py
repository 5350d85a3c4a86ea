"""The metadata of a processor's offset commits: which topics the offsets rely on.

The processor has no database. An offset is only valid together with the wait topic in which the records below it are
registered, and with the input topic that it was read from. See docs/decisions/0001.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wait_registry.kafka.cluster import TopicIdentity

PREFIX = "waitreg1"
SEPARATOR = ";"
IDENTITY_PARTS = 4
_PARTITIONS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The wait topic that a commit relies on, and the ID of the consumed topic if the commit has it."""

    wait_topic: TopicIdentity
    input_topic_id: str | None = None

    def encode(self) -> str:
        """Return ``waitreg1;{wait topic};{topic ID};{partition count}[;input_topic_id={topic ID}]``."""
        topic = self.wait_topic
        parts = [PREFIX, topic.topic, topic.topic_id, str(topic.partitions)]
        if self.input_topic_id is not None:
            parts.append(f"input_topic_id={self.input_topic_id}")
        return SEPARATOR.join(parts)


def decode_metadata(text: str | None) -> CommitMetadata | None:
    """Read a metadata string; None if it is empty or another program wrote it.

    The parts after the wait topic are ``name=value``; unknown names are ignored, so a later version can add some.
    """
    parts = (text or "").split(SEPARATOR)
    if len(parts) < IDENTITY_PARTS or parts[0] != PREFIX or not _PARTITIONS.fullmatch(parts[3]):
        return None
    named = dict(part.partition("=")[::2] for part in parts[IDENTITY_PARTS:])
    wait_topic = TopicIdentity(parts[1], parts[2], int(parts[3]))
    return CommitMetadata(wait_topic, named.get("input_topic_id") or None)
