"""Check the consumer group of a processor: its offsets, its members, and what waits in topics that it has left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.lost_offsets import FIX as LOST_FIX
from processor.intake.lost_offsets import lost_line, sign_of_earlier_work
from processor.intake.start_decision import Start
from processor.intake.start_offsets import StartOffsets
from processor.intake.subscription import SubscribedTopic, subscription
from wait_registry.clock import SystemClock
from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin, admin, consumer_config
from wait_registry.kafka.cluster import describe_topic, topic_names
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import group_members
from wait_registry.kafka.outside_log import REWIND, outside_log, partitions_text
from wait_registry.kafka.positions import earliest_offsets, end_offsets, offsets_from_time
from wait_registry.kafka.requests import persistently
from wait_registry.kafka.topics import broker_config
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.records.topics import TopicPartition, left_topics
from wait_registry.settings.processor import SourceKind
from wait_registry.settings.tree import Settings
from waitreg.doctor.kafka_permissions import is_access_refused

OFFSETS_FIX: Final = "choose where the group continues (`waitreg rewind`), or another processor.group"
# Few transactions of a producer that is well take that long.
LOOK_AGAIN_S: Final = 5.0
# A timestamp further in the future is a producer's, and doesn't show when its record is due.
AHEAD_MS: Final = 60_000
RETENTION: Final = "offsets.retention.minutes"
START: Final = "start `waitreg processor`, or read in its log and /health/ready why it doesn't consume"


class Logs(NamedTuple):
    """Of the partitions of a topic: where the group continues (-1 if it never committed), first offset, and end."""

    offsets: Mapping[int, int]
    firsts: Mapping[int, int]
    ends: Mapping[int, int]

    @classmethod
    def look_up(cls, client: Admin, topic: str, offsets: Mapping[int, int]) -> Logs:
        firsts = earliest_offsets(client, topic, offsets)
        return cls(offsets, firsts, end_offsets(client, topic, offsets, "read_uncommitted"))

    @property
    def begins(self) -> dict[int, int]:
        """Where the group begins in each partition."""
        return {number: max(self.firsts[number], at) for number, at in self.offsets.items()}

    @property
    def committed(self) -> int:
        """In how many partitions the group has committed an offset."""
        return sum(offset >= 0 for offset in self.offsets.values())

    @property
    def waiting(self) -> int:
        """How many offsets there are from where the group begins to the ends."""
        return sum(max(0, self.ends[number] - begin) for number, begin in self.begins.items())


def group_offsets(settings: Settings) -> Iterator[Diagnosis]:
    """Check the committed offsets as a processor does, with one diagnosis per topic for the records that wait.

    Raises:
        ConfigurationError: the wait topic or an input topic was recreated, or wait.partitions changed, since the
            offsets were committed.
    """
    client, group, wait = admin(settings.kafka), settings.processor.group, settings.wait
    if not group:
        # The check of the settings reports that it is missing.
        return
    if settings.processor.source is SourceKind.SHARE:
        yield ok(f"{group} is a share group, which has no offsets: kafka-share-groups.sh shows its members and lag")
        return
    members = group_members(client, group)
    logs: dict[str, Logs] = {}
    consumer = Consumer(consumer_config(settings.kafka, **{"group.id": group, "enable.auto.commit": False}))
    try:
        topics = subscription(settings, "", topic_names(client))
        consumed = ConsumedTopics.look_up(client, group, topics.values())
        wait_topic = describe_wait_topic(client, wait.topic, wait.partitions)
        offsets = StartOffsets(wait_topic, consumed, lambda _: True, another=list, ends=_unasked, beginnings=_unasked)
        for topic in consumed.names:
            partitions = [KafkaPartition(topic, number) for number in range(describe_topic(client, topic).partitions)]
            # The coordinator of a group that is new to the broker may not be elected yet.
            starts = persistently(client, partial(_starts, offsets, consumer, partitions))
            found = {start.partition: -1 if start.offset is None else start.offset for start in starts}
            logs[topic] = Logs.look_up(client, topic, found)
        outside = list(_outside(logs, group))
        yield from outside
        for topic, seen in () if outside else logs.items():
            yield from _topic_lines(client, settings, topics[topic], seen, members)
    finally:
        consumer.close()


def offsets_retention(settings: Settings) -> Iterator[Diagnosis]:
    """Check that a group without members keeps its offsets for longer than its records wait."""
    processor = settings.processor
    longest_s = max(processor.delay_s, *processor.retry.delays_s, 0)
    if not longest_s:
        return
    client = admin(settings.kafka)
    try:
        keeps_minutes = float(broker_config(client)[RETENTION])
    except ConfigurationError as refusal:
        if not is_access_refused(refusal):
            raise
        yield ok(f"{RETENTION} can't be read with this user's permissions; it must be more than {longest_s / 60:.16g}")
        return
    yield retention_line(keeps_minutes, longest_s)


def retention_line(keeps_minutes: float, longest_s: float) -> Diagnosis:
    """Warn if the broker keeps the offsets of a group without members for no longer than the longest delay."""
    seen = f"{RETENTION} is {keeps_minutes:.0f}, the longest delay {longest_s / 60:.16g} minutes"
    if keeps_minutes * 60 > longest_s:
        return ok(seen)
    return warning(
        f"{seen}: a group that stops for that long loses its offsets before its records are due, and begins again "
        "where its topics begin",
        f"raise {RETENTION} of the brokers, or shorten the delay",
    )


def _unasked(_: object) -> dict[tuple[str, int], int]:
    return {}


def _starts(offsets: StartOffsets, consumer: Consumer, partitions: list[KafkaPartition]) -> list[Start]:
    found = offsets.at_once(consumer, partitions)
    if found is None:
        raise TransientError("the group's coordinator doesn't answer what has been committed")
    return found


def _topic_lines(
    client: Admin, settings: Settings, subscribed: SubscribedTopic, logs: Logs, members: int
) -> Iterator[Diagnosis]:
    group, topic, now_ms = settings.processor.group, subscribed.name, SystemClock().now_ms()
    due = _due(client, topic, logs, round(1000 * subscribed.delay_s), now_ms) if subscribed.delay_s else ""
    is_input = topic in settings.processor.topics
    if is_input and logs.waiting and not logs.committed and (sign := sign_of_earlier_work(settings, client, topic)):
        yield warning(lost_line(group, topic, sign, sorted(logs.offsets), logs.waiting), LOST_FIX)
    else:
        yield lag_line(group, topic, logs, members, due)
    stable = end_offsets(client, topic, logs.offsets)
    begins = {number: at for number, at in stable.items() if at < logs.ends[number]}
    if begins:
        yield from _open_transactions(client, topic, begins)


def _due(client: Admin, topic: str, logs: Logs, delay_ms: int, now_ms: int) -> str:
    """Return how many of the waiting records are due.

    The broker finds the first timestamp that is too young. If it is in the future, or its record was handled, it says
    nothing of the records behind it.
    """
    found = offsets_from_time(client, topic, logs.ends, now_ms - delay_ms + 1, "read_uncommitted")
    due, hidden = 0, False
    for number, begin in logs.begins.items():
        offset, time_ms = found[number]
        young = logs.ends[number] if offset < 0 else offset
        due += max(0, young - begin)
        hidden = hidden or (begin < logs.ends[number] and (young < begin or time_ms > now_ms + AHEAD_MS))
    return f"at least {due}" if hidden else str(due)


def _open_transactions(client: Admin, topic: str, begins: Mapping[int, int]) -> Iterator[Diagnosis]:
    """Warn of transactions that are open at two looks: their timestamps may be the producers', and say nothing."""
    time.sleep(LOOK_AGAIN_S)
    still = sorted(number for number, at in end_offsets(client, topic, begins).items() if at == begins[number])
    if still:
        places = ", ".join(f"{topic}[{number}] at offset {begins[number]}" for number in still)
        since = f"{LOOK_AGAIN_S:g} s or longer"
        yield warning(
            f"a transaction has been open for {since}, and nothing behind it can be read: {places}",
            'end it: docs/runbook.md, "Transaction stays open"',
        )


def lag_line(group: str, topic: str, logs: Logs, members: int, due: str = "") -> Diagnosis:
    """Report how far a group is in a topic; warn if no member consumes the records, or if it never committed.

    Args:
        group: the group.
        topic: the consumed topic.
        logs: its partitions.
        members: of the group.
        due: how many of the waiting records are due; empty in a topic without a delay.
    """
    of_these = f" ({due} of them due)" if due else ""
    seen = (
        f"group {group}: {logs.committed} of {len(logs.offsets)} partitions of {topic} have one, "
        f"{logs.waiting} offsets to the end{of_these}, {members} members in the group"
    )
    if logs.waiting > 0 and (members == 0 or logs.committed == 0):
        return warning(f"{seen} (records to the end with no member, or with nothing committed, are a warning)", START)
    return ok(seen)


def _outside(logs: Mapping[str, Logs], group: str) -> Iterator[Diagnosis]:
    committed = _by_place({topic: found.offsets for topic, found in logs.items()})
    committed = {place: offset for place, offset in committed.items() if offset >= 0}
    firsts = _by_place({topic: found.firsts for topic, found in logs.items()})
    ends = _by_place({topic: found.ends for topic, found in logs.items()})
    if found := outside_log(committed, firsts, ends):
        first = found[0]
        yield error(
            f"group {group} has committed offsets that aren't in the logs of {partitions_text(found)}: records were "
            f"deleted unread, or a topic was recreated ({partitions_text([first])}: offset {committed[first]}, log "
            f"{firsts[first]} to {ends[first]})",
            f"stop every processor of the group; `{REWIND}` moves these partitions alone",
        )


def _by_place(by_topic: Mapping[str, Mapping[int, int]]) -> dict[TopicPartition, int]:
    return {(topic, number): offset for topic, found in by_topic.items() for number, offset in found.items()}


def left(settings: Settings) -> Iterator[Diagnosis]:
    """Warn of records that no processor handles since an input topic was removed, or the group was renamed."""
    client, processor = admin(settings.kafka), settings.processor
    found = left_topics(topic_names(client), processor.topics, processor.group) if processor.group else {}
    reported = False
    for name, (topic, group) in sorted(found.items()):
        try:
            if (line := _left_line(client, settings, name, topic, group)) is not None:
                reported = True
                yield line
        except ConfigurationError as refusal:
            if not is_access_refused(refusal):
                raise
            reported = True
            yield ok(f"whether {name} is empty can't be read with this user's permissions")
    if not reported:
        yield ok("no retry or redelivery topic of an earlier setting has records")


def _left_line(client: Admin, settings: Settings, name: str, topic: str, group: str) -> Diagnosis | None:
    own = group == settings.processor.group
    if not own and group_members(client, group):
        return None
    places = [(name, number) for number in range(describe_topic(client, name).partitions)]
    offsets = {at.partition: at.offset for at in committed_offsets(settings.kafka, group, places)}
    waiting = Logs.look_up(client, name, offsets).waiting
    if not waiting:
        return None
    seen = f"{name} has {waiting} offsets to its end, and no processor consumes it"
    until = f"until {name} is empty, or delete {name} if nothing needs its records"
    if own:
        return warning(f"{seen}: {topic} isn't in processor.topics", f"name {topic} in processor.topics {until}")
    return warning(f"{seen}: group {group} has no member", f"run a processor with processor.group={group} {until}")
