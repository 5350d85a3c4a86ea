"""Names of topics and partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from wait_registry.records.delays import delay_text, parse_delay

TopicPartition: TypeAlias = tuple[str, int]

MAX_TOPIC_LENGTH: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
# Of an input topic and a group, whose dots are doubled.
_OWN_NAME: Final = re.compile(r"(.*[^.])\.((?:[^.]|\.\.)+)\.(?:redeliver|retry\.[^.]+)")


def is_topic_name(text: str) -> bool:
    """Return whether Kafka accepts this name of a topic.

    The headers of a record may name any text as a topic. Never send a broker one that isn't a name: from 32,768 bytes
    on it can't read the request and closes the connection, as in an outage.
    """
    return len(text) <= MAX_TOPIC_LENGTH and text not in (".", "..") and _NAME.fullmatch(text) is not None


def kept_topic_name(topic: str, topic_id: str) -> str:
    """Return the name under which the tables keep the dead letters of a deleted topic; no topic has such a name.

    Args:
        topic: its name.
        topic_id: in base64. The result has the alphabet of addresses, as Kafka's tools show it: with a slash, it would
            be another address of the console.
    """
    return f"{topic}@{topic_id.replace('+', '-').replace('/', '_')}"


def is_kept_topic_name(text: str) -> bool:
    """Return whether the tables may have dead letters of a topic of this name: a topic's, or a `kept_topic_name`."""
    name, at, topic_id = text.partition("@")
    return is_topic_name(name) and (not at or is_topic_name(topic_id))


@lru_cache(maxsize=1_024)
def redelivery_topic(topic: str, group: str) -> str:
    """Return the topic through which a group receives expired records of an input topic; no other group has it.

    Dots of the group are doubled in the name, as in those of retry topics.
    """
    return f"{_of_group(topic, group)}.redeliver"


def retry_topic(topic: str, group: str, delay: int) -> str:
    """Return the topic whose records a group handles again after a delay, s."""
    return f"{_retry_prefix(topic, group)}{delay_text(delay)}"


def retry_delay_s(name: str, topic: str, group: str) -> int | None:
    """Return the delay of a retry topic of this input topic and group, s; None if it is no such topic."""
    prefix = _retry_prefix(topic, group)
    try:
        delay = parse_delay(name.removeprefix(prefix)) if name.startswith(prefix) else None
    except ValueError:
        return None
    return delay if delay and name == retry_topic(topic, group, delay) else None


def topic_owner(name: str) -> tuple[str, str] | None:
    """Return the input topic and the group whose retry or redelivery topic has this name; None if it is no such name.

    Another program may name a topic alike.
    """
    match = _OWN_NAME.fullmatch(name)
    if match is None:
        return None
    topic, group = match[1], match[2].replace("..", ".")
    fits = name == redelivery_topic(topic, group) or retry_delay_s(name, topic, group) is not None
    return (topic, group) if fits else None


@lru_cache(maxsize=1_024)
def input_of(topic: str, group: str) -> str:
    """Return the input topic of a retry or redelivery topic of a group; of any other topic, its own name.

    The first delivery of a record may be from such a topic: a person or another program put it there.
    """
    owner = topic_owner(topic)
    return owner[0] if owner is not None and owner[1] == group else topic


def left_topics(names: Iterable[str], topics: Collection[str], group: str) -> dict[str, tuple[str, str]]:
    """Return retry and redelivery topics that a group with these input topics doesn't consume, and may have left.

    It left them if an input topic was removed from its settings, or if the group had another name. Those of another
    name may belong to another group of the same input.

    Args:
        names: of all topics.
        topics: the input topics of the group.
        group: its name.

    Returns:
        The input topic and the group of each, by name.
    """
    found = {}
    for name in names:
        owner = topic_owner(name)
        if owner is not None and (owner[0] in topics) != (owner[1] == group):
            found[name] = owner
    return found


def _retry_prefix(topic: str, group: str) -> str:
    return f"{_of_group(topic, group)}.retry."


def _of_group(topic: str, group: str) -> str:
    """Return a prefix that no other topic and group have, as long as no input topic ends with a dot.

    A group deletes what it has committed from its own topics, so it must never share one. With dots as they are, group
    b.c of topic a and group c of topic a.b would both have a.b.c.
    """
    return f"{topic}.{group.replace('.', '..')}"
