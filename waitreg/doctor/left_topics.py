"""Check that no records wait in retry and redelivery topics that the group no longer consumes."""

from __future__ import annotations

from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, ok, warning
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic, topic_names
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.errors import cause_of, is_access_problem
from wait_registry.kafka.group_description import group_members
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.records.topics import left_topics
from wait_registry.settings.root import Settings


def left(settings: Settings) -> Iterator[Diagnosis]:
    """Warn of records that no processor handles since an input topic was removed, or the group was renamed."""
    client, processor = admin(settings.kafka), settings.processor
    found = left_topics(topic_names(client), processor.topics, processor.group) if processor.group else {}
    reported = False
    for name, (topic, group) in sorted(found.items()):
        try:
            if (line := _line(client, settings, name, topic, group)) is not None:
                reported = True
                yield line
        except ConfigurationError as refusal:
            cause = cause_of(refusal)
            if cause is None or not is_access_problem(cause):
                raise
            reported = True
            yield ok(f"whether {name} is empty can't be read with this user's permissions")
    if not reported:
        yield ok("no retry or redelivery topic of an earlier setting has records")


def _line(client: Admin, settings: Settings, name: str, topic: str, group: str) -> Diagnosis | None:
    own = group == settings.processor.group
    if not own and group_members(client, group):
        return None
    waiting = _waiting(client, settings, name, group)
    if not waiting:
        return None
    seen = f"{name} has {waiting} offsets to its end, and no processor consumes it"
    until = f"until {name} is empty, or delete {name} if nothing needs its records"
    if own:
        return warning(f"{seen}: {topic} isn't in processor.topics", f"name {topic} in processor.topics {until}")
    return warning(f"{seen}: group {group} has no member", f"run a processor with processor.group={group} {until}")


def _waiting(client: Admin, settings: Settings, name: str, group: str) -> int:
    numbers = range(describe_topic(client, name).partitions)
    committed = committed_offsets(settings.kafka, group, [(name, number) for number in numbers])
    firsts, ends = earliest_offsets(client, name, numbers), end_offsets(client, name, numbers)
    return sum(max(0, ends[at.partition] - max(at.offset, firsts[at.partition])) for at in committed)
