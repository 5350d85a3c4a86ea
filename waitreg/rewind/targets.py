"""Where to move: the options of the command, and the offsets that they mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.positions import offsets_from_time
from wait_registry.records.times import parse_utc
from wait_registry.records.topics import TopicPartition, redelivery_topic, retry_delay_s
from wait_registry.settings.processor import ProcessorSettings


@dataclass(frozen=True, slots=True)
class Target:
    """One of four: a time in ms since 1970, an offset, the end of the log, or its beginning."""

    time_ms: int | None = None
    offset: int | None = None
    latest: bool = False
    earliest: bool = False

    def __post_init__(self) -> None:
        """Refuse none, and more than one."""
        if [self.time_ms is not None, self.offset is not None, self.latest, self.earliest].count(True) != 1:
            raise ConfigurationError("give one of --to-time, --to-offset, --to-latest and --to-earliest")


def target_of(to_time: str | None, **others: Any) -> Target:
    """Return the target of the command's options; raises as `Target` and `parse_time`."""
    return Target(None if to_time is None else parse_time(to_time), **others)


class Landing(NamedTuple):
    """Where a partition goes.

    ``time_ms`` is the timestamp of the record that decided it, ms since 1970; None if none did.
    """

    offset: int
    time_ms: int | None = None


def landings(
    admin: AdminClient, target: Target, ends: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, Landing]:
    """Return the offset that a target means in each partition.

    Args:
        admin: the client to ask.
        target: as given.
        ends: first and end offset by partition. A partition without a record at or after a time goes to its end.
    """
    if target.time_ms is None:
        return {place: Landing(_fixed(target, first, end)) for place, (first, end) in ends.items()}
    found: dict[TopicPartition, Landing] = {}
    for topic, partitions in by_topic(ends).items():
        for partition, (offset, time_ms) in offsets_from_time(admin, topic, partitions, target.time_ms).items():
            first, end = ends[topic, partition]
            decided = 0 <= offset < end
            found[topic, partition] = Landing(max(offset, first), time_ms) if decided else Landing(end)
    return found


def _fixed(target: Target, first: int, end: int) -> int:
    if target.offset is not None:
        return target.offset
    return end if target.latest else first


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions by topic."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found


def chosen_topics(
    processor: ProcessorSettings, given: Collection[str], partitions: Collection[int], earliest: bool = False
) -> list[str]:
    """Return the topics that are meant.

    Args:
        processor: group and input topics.
        given: the topics of the command line; all inputs if there are none.
        partitions: the partitions of the command line, which one topic must have.
        earliest: whether they are moved to their beginnings, as retry and redelivery topics can be too.

    Raises:
        ConfigurationError: no group, no such topic, or partitions of more than one topic.
    """
    if not processor.group or not processor.topics:
        raise ConfigurationError("processor.group and processor.topics aren't set; the command needs both")
    for topic in given:
        if topic in processor.topics or ((own := _is_own(topic, processor)) and earliest):
            continue
        if own:
            raise ConfigurationError(
                f"topic {topic} is a retry or redelivery topic of group {processor.group}. It can be moved with "
                "--to-earliest alone: what it holds before another offset would never be handled"
            )
        inputs = ", ".join(processor.topics)
        raise ConfigurationError(
            f"topic {topic} isn't in processor.topics ({inputs}), nor a retry or redelivery topic of group "
            f"{processor.group}"
        )
    topics = list(dict.fromkeys(given or processor.topics))
    if partitions and len(topics) > 1:
        raise ConfigurationError(f"--partition needs one topic, and there are {len(topics)}: give --topic")
    return topics


def _is_own(topic: str, processor: ProcessorSettings) -> bool:
    """Return whether it is a retry or redelivery topic of the group."""
    group = processor.group
    return any(
        topic == redelivery_topic(each, group) or retry_delay_s(topic, each, group) is not None
        for each in processor.topics
    )


def parse_time(text: str) -> int:
    """Return an ISO 8601 time as ms since 1970; without an offset it is UTC.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return round(parse_utc(text).timestamp() * 1000)
    except ValueError:
        raise ConfigurationError(f"{text!r} is no ISO 8601 time, e.g. 2026-11-27T08:00:00Z") from None
