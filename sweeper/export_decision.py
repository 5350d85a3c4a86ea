"""Decide what a due row becomes: a dead letter or a redelivery, each with its tombstone, or unsendable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sweeper.due import DueRow
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.targets import Target, record_size
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers, dead_letter_topic
from wait_registry.records.headers import require_sendable_names
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.times import format_utc_ms
from wait_registry.records.tombstone import Outcome
from wait_registry.records.topics import MAX_TOPIC_LENGTH, input_of, redelivery_topic
from wait_registry.settings.tree import Settings

MAX_REASON_CHARACTERS = 2_048

Header = tuple[str, bytes | None]


class Obstacle(StrEnum):
    """Why a row is unsendable; it remains in the tables, and the next sweep tries again."""

    TOO_LARGE = "too_large"
    NO_TOPIC = "no_topic"
    NO_KEY = "no_key"
    UNREADABLE = "unreadable"


# A named tuple, not a frozen dataclass: one per exported record, at a third of the cost.
class Outgoing(NamedTuple):
    """A record to publish (without a partition its key decides) and the registration that it settles."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    wait_id: str
    wait_partition: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Unsendable:
    """A row that no topic takes, and why; the others are exported. It is logged, so make it by `unsendable`."""

    wait_id: str
    topic: str | None
    partition: int | None
    offset: int | None
    obstacle: Obstacle
    reason: str


def unsendable(
    wait_id: str, topic: str, partition: int | None, offset: int | None, obstacle: Obstacle, reason: str
) -> Unsendable:
    """Name a row by what its record says of itself, bounded, since that may be any text of any length."""
    return Unsendable(wait_id, topic[:MAX_TOPIC_LENGTH], partition, offset, obstacle, reason[:MAX_REASON_CHARACTERS])


def outgoing(row: DueRow, settings: Settings, targets: Callable[[str], Target], now_ms: int) -> Outgoing | Unsendable:
    """Decide what is published for a due row.

    Args:
        row: the registration.
        settings: the sweeper's defaults, for what a registration doesn't say.
        targets: looks a topic up.
        now_ms: time of dead-lettering, ms since the epoch.

    Returns:
        The redelivery while the row's policy and deliveries allow it and it fits, else the dead letter; or the reason
        why no topic takes either. Nothing is redelivered to a compacted input, where it would replace newer records
        of its key.
    """
    original = row.record.original
    try:
        require_sendable_names(original.headers)
        candidates = [each for each in (_redelivery(row, settings), _dead_letter(row, settings, now_ms)) if each]
    except (DataError, ConfigurationError) as error:
        found = Obstacle.UNREADABLE, str(error)
    else:
        for candidate in candidates:
            target = targets(candidate.topic)
            if candidate.partition is not None and target.compacted:
                continue
            refused = _refusal(candidate, target)
            if refused is None:
                return candidate
            found = refused
            if found[0] is not Obstacle.TOO_LARGE:
                break
    return unsendable(row.record.wait_id, original.topic, original.partition, original.offset, *found)


def _refusal(candidate: Outgoing, target: Target) -> tuple[Obstacle, str] | None:
    """Return why this topic doesn't take this record, and the fix; None if it does."""
    topic, fix = target.topic, "kafka-configs --alter --topic"
    if target.problem is not None:
        return Obstacle.NO_TOPIC, target.problem
    if candidate.partition is not None and candidate.partition >= target.partitions:
        return Obstacle.NO_TOPIC, f"{topic} has lost its partition {candidate.partition}"
    if candidate.key is None and target.compacted:
        problem = f"the record has no key, which a compacted topic such as {topic} refuses"
        return Obstacle.NO_KEY, f"{problem}. Change it: {fix} {topic} --add-config cleanup.policy=delete"
    size = record_size(candidate.key, candidate.value, candidate.headers)
    if size > target.max_message_bytes:
        problem = f"{size} bytes with its headers, {topic} takes {target.max_message_bytes}"
        return Obstacle.TOO_LARGE, f"{problem}. Raise the limit: {fix} {topic} --add-config max.message.bytes={size}"
    return None


def _redelivery(row: DueRow, settings: Settings) -> Outgoing | None:
    record, defaults = row.record, settings.sweeper
    policy = record.expiry_policy or defaults.default_expiry_policy
    delivery, limit = record.delivery or 1, record.max_deliveries or defaults.default_max_deliveries
    # Without a group there is no redelivery topic, and no processor that continues the count of deliveries.
    if policy != "redeliver" or not record.group or delivery >= limit:
        return None
    original = record.original
    headers = redelivery_headers(original.headers, _lineage(row, delivery + 1, record.max_deliveries))
    if record.redeliver_to == "origin":
        return _published(row, original.topic, original.partition, headers, Outcome.REDELIVERED)
    again = redelivery_topic(input_of(original.topic, record.group), record.group)
    return _published(row, again, None, headers, Outcome.REDELIVERED)


def _dead_letter(row: DueRow, settings: Settings, now_ms: int) -> Outgoing:
    record = row.record
    topic = record.dead_letter_topic or dead_letter_topic(
        default_dead_letter_topic(settings), record.original.topic, record.group or ""
    )
    headers = dead_letter_headers(record.original.headers, _lineage(row, record.delivery), _expired(row, now_ms))
    return _published(row, topic, None, headers, Outcome.EXPIRED)


def default_dead_letter_topic(settings: Settings) -> str:
    """Return the template of the dead letter topic for registrations that name none."""
    return settings.sweeper.default_dead_letter_topic or settings.dead_letter.topic


def _expired(row: DueRow, now_ms: int) -> Failure:
    record = row.record
    message = (
        f"no outcome by {format_utc_ms(record.expires_at_ms)}; registered by instance {record.instance or 'unknown'} "
        f"of group {record.group or 'unknown'}, delivery {record.delivery or 1}"
    )
    return Failure(Reason.EXPIRED, "WaitExpired", message, None, now_ms)


def _lineage(row: DueRow, delivery: int | None, max_deliveries: int | None = None) -> Lineage:
    record = row.record
    where, by = (row.wait_partition, row.wait_offset), (record.group, record.instance)
    key = None if record.idempotency_key == record.wait_id else record.idempotency_key
    # By position: one is built per exported record.
    return Lineage(*record.original[:5], record.wait_id, *where, *by, delivery, max_deliveries, key, record.source)


def _published(row: DueRow, topic: str, partition: int | None, headers: list[Header], outcome: Outcome) -> Outgoing:
    original, wait_id = row.record.original, row.record.wait_id
    return Outgoing(topic, partition, original.key, original.value, headers, wait_id, row.wait_partition, outcome)
