"""Names of topics and partitions."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]

MAX_TOPIC_LENGTH: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_topic_name(text: str) -> bool:
    """Return whether Kafka accepts this name of a topic.

    The headers of a record may name any text as a topic. Never send a broker one that isn't a name: from 32,768 bytes
    on it can't read the request and closes the connection, as in an outage.
    """
    return len(text) <= MAX_TOPIC_LENGTH and text not in (".", "..") and _NAME.fullmatch(text) is not None


def redelivery_topic(topic: str, group: str) -> str:
    """Return the topic through which a group receives expired records of an input topic; other groups don't."""
    return f"{topic}.{group}.redeliver"
