"""Whether a group without committed offsets is new, or has lost them: the broker's answer is the same."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from confluent_kafka.admin import AclOperation

from wait_registry.errors import TransientError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import describe_existing, describe_topic, may, topic_names
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.log_reader import last_records
from wait_registry.kafka.positions import beginnings_in_time, ends_in_time
from wait_registry.records.dead_letter import dead_letter_topic
from wait_registry.records.header_names import ORIGINAL_TOPIC, WAIT_GROUP
from wait_registry.records.topics import redelivery_topic, retry_delay_s
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

ASK_LIMIT_S: Final = 5.0
# Of each partition of the wait topic; compaction leaves a registration there for a while after its end.
LAST_RECORDS: Final = 200
FIX: Final = (
    "to continue elsewhere, stop every processor of the group and run `waitreg rewind --to-time TIME`; to keep offsets "
    "for longer, raise offsets.retention.minutes of the brokers"
)


def warn_of_lost_offsets(settings: Settings, client: Admin) -> None:
    """Log each input topic that begins at its beginning although the group has consumed it before.

    Call it before the process joins its group, whose members commit the beginning of new partitions at once.

    Raises:
        ConfigurationError: a topic is missing, or the broker refuses us.
    """
    try:
        for line in _lost(settings, client):
            log.warning("%s. To fix it: %s", line, FIX)
    except TransientError as error:
        log.info("whether the group has lost its offsets can't be asked now: %s", error)


def sign_of_earlier_work(settings: Settings, client: Admin, topic: str) -> str | None:
    """Return what shows that the group has handled records of an input topic before, None if nothing does."""
    group = settings.processor.group
    existing = topic_names(client)
    own = {redelivery_topic(topic, group), *(name for name in existing if retry_delay_s(name, topic, group))}
    template = settings.dead_letter.topic
    if "{topic}" in template and "{group}" in template:
        own.add(dead_letter_topic(template, topic, group))
    for name, described in describe_existing(client, sorted(own & existing), optional=own).items():
        if any(ends_in_time(client, ((name, number) for number in range(len(described.partitions)))).values()):
            return f"{name} has had records"
    return _sign_in_the_wait_topic(settings, client, topic)


def lost_line(group: str, topic: str, sign: str, partitions: Iterable[int], waiting: int) -> str:
    """Return what happens to a group that has lost its offsets."""
    places = ", ".join(f"{topic}[{number}]" for number in partitions)
    return (
        f"group {group} has no committed offset of {topic}, but has consumed it before ({sign}): its offsets "
        f"expired or were deleted. {places} begin at the beginning, and up to {waiting} records are handled again"
    )


def _lost(settings: Settings, client: Admin) -> Iterator[str]:
    group = settings.processor.group
    counts = {topic: describe_topic(client, topic).partitions for topic in settings.processor.topics}
    places = [(topic, number) for topic, count in counts.items() for number in range(count)]
    answers = committed_offsets(settings.kafka, group, places, ASK_LIMIT_S)
    # A topic with some committed offsets got more partitions.
    for topic in sorted(counts.keys() - {answer.topic for answer in answers if answer.offset >= 0}):
        of_topic = [place for place in places if place[0] == topic]
        first, ends = beginnings_in_time(client, of_topic), ends_in_time(client, of_topic)
        waiting = {place[1]: end - first[place] for place, end in ends.items() if end > first.get(place, end)}
        if waiting and (sign := sign_of_earlier_work(settings, client, topic)):
            yield lost_line(group, topic, sign, sorted(waiting), sum(waiting.values()))


def _sign_in_the_wait_topic(settings: Settings, client: Admin, topic: str) -> str | None:
    """Look at the last registrations; a processor needs no permission to read them, so it may have none."""
    group, wait = settings.processor.group, settings.wait.topic
    if not may(client, wait, AclOperation.READ):
        return None
    wanted = {(WAIT_GROUP, group.encode()), (ORIGINAL_TOPIC, topic.encode())}
    ends = ends_in_time(client, ((wait, number) for number in range(settings.wait.partitions)))
    starts = {number: max(0, end - LAST_RECORDS) for (_, number), end in ends.items() if end}
    for record in last_records(settings.kafka, group, wait, starts, ASK_LIMIT_S):
        if wanted <= set(record.headers() or ()):
            return f"{wait} has registrations of it"
    return None
