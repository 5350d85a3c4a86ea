"""Names of topics: each is one that Kafka takes, and serves one purpose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from wait_registry.diagnosis import Diagnosis, error, warning
from wait_registry.records.topics import is_topic_name, redelivery_topic, topic_owner
from wait_registry.settings.contradictions import more_than
from wait_registry.settings.processor import ExpiryPolicy
from wait_registry.settings.topics import HOUR_MS
from wait_registry.settings.tree import Settings

_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")


def topic_problems(settings: Settings) -> Iterator[Diagnosis]:
    """Yield what is wrong with the names of topics and their settings."""
    wait = settings.wait
    if wait.min_insync_replicas > wait.replication_factor:
        replicas = wait.replication_factor
        yield more_than("wait.min_insync_replicas", wait.min_insync_replicas, "wait.replication_factor", replicas)
    if wait.delete_retention_ms < 24 * HOUR_MS:
        yield warning(
            f"wait.delete_retention_ms is {wait.delete_retention_ms} ms, below 24 h: a sink that stops for half of "
            "that time needs a rebuild; set 86400000 or more outside of tests",
        )
    yield from _topic_name_problems(settings)
    yield from _role_problems(settings)


def _role_problems(settings: Settings) -> Iterator[Diagnosis]:
    """Yield each topic that is named for two purposes: its records would circulate, or be deleted with others."""
    inputs = settings.processor.topics
    for topic, count in Counter(inputs).items():
        if count > 1:
            yield error(f"processor.topics contains {topic} {count} times: name it once")
    roles: dict[str, dict[str, None]] = {}
    for topic, role in _named(settings):
        roles.setdefault(topic, {})[role] = None
    for topic, found in roles.items():
        owner = topic_owner(topic)
        own = "" if owner is None else f"{_kind(topic)} topic of {owner[0]} and {owner[1]}"
        if owner is not None and owner[0] in inputs:
            found[own] = None
        first, *others = found
        if others:
            yield error(f"{first} is {topic}, which is also {' and '.join(others)}: give each a topic of its own")
        elif owner is not None:
            yield warning(
                f"{first} is {topic}, which would also be {own}: if there is such an input and group, the group "
                "deletes what it has passed there. Then use another topic"
            )


def _kind(topic: str) -> str:
    return "the redelivery" if topic.endswith(".redeliver") else "a retry"


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the topics that settings name, each with what for."""
    group, setting = settings.processor.group, "dead_letter.topic"
    yield settings.wait.topic, "wait.topic"
    yield settings.operations.topic, "operations.topic"
    for topic in settings.processor.topics:
        yield topic, "processor.topics"
    for template in filter(None, (settings.dead_letter.topic, settings.sweeper.default_dead_letter_topic)):
        for topic in settings.processor.topics or ("",):
            yield template.replace("{topic}", topic).replace("{group}", group), setting
    yield from ((topic, setting) for topic in settings.sink.dead_letter_topics)


def _topic_name_problems(settings: Settings) -> Iterator[Diagnosis]:
    templates = {"dead_letter.topic": settings.dead_letter.topic}
    if settings.sweeper.default_dead_letter_topic:
        templates["sweeper.default_dead_letter_topic"] = settings.sweeper.default_dead_letter_topic
    names = [("wait.topic", settings.wait.topic), ("operations.topic", settings.operations.topic)]
    names += [("processor.topics", topic) for topic in settings.processor.topics]
    names += [("sink.dead_letter_topics", topic) for topic in settings.sink.dead_letter_topics]
    for name, value in (*names, *templates.items()):
        if value.startswith("__"):
            yield error(f"{name} is {value!r}: names that begin with __ are those of Kafka and its tools; name another")
        elif name in templates:
            unknown = [found for found in _PLACEHOLDER.findall(value) if found not in ("{topic}", "{group}")]
            if unknown or not is_topic_name(_PLACEHOLDER.sub("x", value)):
                yield error(f"{name} is {value!r}: expected a topic name, which may contain {{topic}} and {{group}}")
        elif not is_topic_name(value):
            yield error(f"{name} is {value!r}, not a topic name: at most 249 letters, digits, dots, _ and -")
        elif name == "processor.topics" and value.endswith("."):
            yield error(
                f"processor.topics contains {value!r}, which ends with a dot: its retry and redelivery topics could be "
                "those of another topic and group, which would delete each other's records; mirror it to another name"
            )
    template, group = settings.dead_letter.topic, settings.processor.group
    retries = settings.processor.retry.delays
    uses_group = "{group}" in template or retries or settings.processor.expiry_policy is ExpiryPolicy.REDELIVER
    if group and uses_group and not is_topic_name(group):
        yield error(
            f"processor.group is {group!r}, which can't be part of a topic name, as dead_letter.topic, "
            "processor.retry.delays or processor.expiry_policy=redeliver require: use letters, digits, dots, _ and - "
            "only"
        )
    else:
        yield from redelivery_name_problems(settings)


def redelivery_name_problems(settings: Settings) -> Iterator[Diagnosis]:
    """Yield a warning if the group has no redelivery topic, because the topic's name would be none."""
    group = settings.processor.group
    if group and not all(is_topic_name(redelivery_topic(topic, group)) for topic in settings.processor.topics):
        yield warning(
            f"processor.group is {group!r}, which makes names of redelivery topics that Kafka refuses, so the group "
            "has none. Its dead letters can be redriven with `--to origin` only, which takes processor.redeliver_to = "
            "origin. Use letters, digits, dots, _ and -, and 249 in all"
        )
