"""First and end offsets of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Literal

from confluent_kafka import IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.errors import code_of
from wait_registry.kafka.requests import answer, persistently, timeout_of

Isolation = Literal["read_committed", "read_uncommitted"]

# librdkafka found no leader: no such topic, no such partition, or an election.
_NO_LEADER = frozenset({KafkaError._NOENT, KafkaError._UNKNOWN_PARTITION})

_LEVELS = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}


def end_offsets(
    admin: AdminClient, topic: str, partitions: Iterable[int], isolation: Isolation = "read_committed"
) -> dict[int, int]:
    """List the ends of partitions.

    Args:
        admin: the client to ask.
        topic, partitions: what to ask for.
        isolation: ``read_committed`` gives the last stable offset, ``read_uncommitted`` the high watermark; they
            differ while a transaction is open.

    Returns:
        The offset after the last record (or transaction marker) of each partition.

    Raises:
        ConfigurationError: no such topic or partition, or no permission.
    """
    return _only_offsets(_ask(admin, topic, partitions, OffsetSpec.latest(), isolation))


def earliest_offsets(admin: AdminClient, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """List the first offset still in the log of each partition."""
    return _only_offsets(_ask(admin, topic, partitions, OffsetSpec.earliest(), "read_uncommitted"))


def offsets_from_time(
    admin: AdminClient,
    topic: str,
    partitions: Iterable[int],
    time_ms: int,
    isolation: Isolation = "read_committed",
) -> dict[int, tuple[int, int]]:
    """Find the first record of each partition that has a timestamp or a later one.

    No record before it has, but records behind it may have any timestamp: producers set them in any order.

    Args:
        admin: the client to ask.
        topic, partitions: what to ask for.
        time_ms: since 1970 in UTC, ms.
        isolation: as in `end_offsets`.

    Returns:
        Its offset and its timestamp, ms since 1970; -1 and -1 for a partition without such a record.
    """
    found = _ask(admin, topic, partitions, _from(time_ms), isolation, least=-1)
    return {partition: (info.offset, info.timestamp) for partition, info in found.items()}


def ends_in_time(
    admin: AdminClient,
    places: Iterable[tuple[str, int]],
    limit_s: float = 1.0,
    isolation: Isolation = "read_uncommitted",
) -> dict[tuple[str, int], int]:
    """List the ends of partitions, of those only for which the broker answers in time.

    Args:
        admin: the client to ask.
        places: topics and partitions.
        limit_s: how long to wait for all answers, s.
        isolation: as in `end_offsets`.
    """
    found = _in_time(admin, dict.fromkeys(places, OffsetSpec.latest()), limit_s, isolation)
    return {place: offset for place, (offset, _) in found.items() if offset >= 0}


def beginnings_in_time(
    admin: AdminClient, places: Iterable[tuple[str, int]], limit_s: float = 1.0
) -> dict[tuple[str, int], int]:
    """List the first offsets still in the log, otherwise as `ends_in_time`."""
    found = _in_time(admin, dict.fromkeys(places, OffsetSpec.earliest()), limit_s)
    return {place: offset for place, (offset, _) in found.items() if offset >= 0}


def firsts_in_time(
    admin: AdminClient, times_ms: Mapping[tuple[str, int], int], limit_s: float = 1.0
) -> dict[tuple[str, int], tuple[int, int]]:
    """Find what `offsets_from_time` finds, for a time of each partition, otherwise as `ends_in_time`."""
    return _in_time(admin, {place: _from(ms) for place, ms in times_ms.items()}, limit_s)


def _from(time_ms: int) -> OffsetSpec:
    # Below 0, Kafka has other meanings: -1 is the end of the log.
    return OffsetSpec.for_timestamp(max(0, time_ms))


def _in_time(
    admin: AdminClient,
    specs: Mapping[tuple[str, int], OffsetSpec],
    limit_s: float,
    isolation: Isolation = "read_uncommitted",
) -> dict[tuple[str, int], tuple[int, int]]:
    wanted = {TopicPartition(*place): spec for place, spec in specs.items()}
    if not wanted:
        return {}
    futures = admin.list_offsets(wanted, isolation_level=_LEVELS[isolation], request_timeout=limit_s)
    done, _ = wait(futures.values(), limit_s)
    return {
        (asked.topic, asked.partition): (int(future.result().offset), int(future.result().timestamp))
        for asked, future in futures.items()
        if future in done and future.exception() is None
    }


def _only_offsets(found: dict[int, ListOffsetsResultInfo]) -> dict[int, int]:
    return {partition: int(info.offset) for partition, info in found.items()}


def _ask(
    admin: AdminClient, topic: str, partitions: Iterable[int], spec: OffsetSpec, isolation: Isolation, least: int = 0
) -> dict[int, ListOffsetsResultInfo]:
    wanted = {TopicPartition(topic, partition): spec for partition in partitions}

    def ask() -> dict[int, ListOffsetsResultInfo]:
        futures = admin.list_offsets(wanted, isolation_level=_LEVELS[isolation], request_timeout=timeout_of(admin))
        return {asked.partition: _answered(admin, asked, future, least) for asked, future in futures.items()}

    return persistently(admin, ask) if wanted else {}


def _answered(
    admin: AdminClient, asked: TopicPartition, future: Future[ListOffsetsResultInfo], least: int
) -> ListOffsetsResultInfo:
    doing = f"listing offsets of {asked.topic}-{asked.partition}"
    try:
        found = answer(admin, future, doing)
    except PermanentError as error:
        if code_of(error) not in _NO_LEADER:
            raise
        count = describe_topic(admin, asked.topic).partitions
        if asked.partition >= count:
            raise ConfigurationError(
                f"topic {asked.topic} has {count} partitions; there is no partition {asked.partition}"
            ) from error
        raise TransientError(str(error)) from error
    # A broker that has just started may answer without an error for a partition that it doesn't lead yet.
    if found.offset < least:
        raise TransientError(f"{doing} failed: saw {found.offset}, expected {least} or more; ask again")
    return found
