"""What becomes of a due row: a dead letter or a redelivery, each with its tombstone; or it is set aside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sweeper.due_row import DueRow
from sweeper.record_size import record_size
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers, dead_letter_topic
from wait_registry.records.headers import require_sendable_names
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.times import format_utc_ms
from wait_registry.records.tombstone import Outcome
from wait_registry.records.topics import MAX_TOPIC_LENGTH, redelivery_topic
from wait_registry.settings.root import Settings

MAX_REASON_CHARACTERS = 2_048


class Obstacle(StrEnum):
    """Why a row can't be exported now; it stays where it is and is tried again at the next sweep."""

    TOO_LARGE = "too_large"
    NO_TOPIC = "no_topic"
    NO_KEY = "no_key"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Target:
    """A topic to export to; ``partitions`` is 0 where it can't be written to, and ``problem`` says why.

    A ``compacted`` one takes no record without a key: the broker would refuse the whole transaction (INVALID_RECORD).
    """

    topic: str
    partitions: int
    max_message_bytes: int
    problem: str | None = None
    compacted: bool = False


# A named tuple, not a frozen dataclass: one is made for each exported record, at a third of the cost.
class Outgoing(NamedTuple):
    """A record to publish (no partition lets its key decide) and the registration that it resolves."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    wait_id: str
    wait_partition: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class SetAside:
    """A row that is left in the registry, and why; the others go on. Goes into the log: make it by `SetAside.at`."""

    wait_id: str
    topic: str | None
    partition: int | None
    offset: int | None
    obstacle: Obstacle
    reason: str

    @classmethod
    def at(
        cls, wait_id: str, topic: str, partition: int | None, offset: int | None, obstacle: Obstacle, reason: str
    ) -> SetAside:
        """Name a row by what its record says of itself, which may be any text of any length: bounded."""
        return cls(wait_id, topic[:MAX_TOPIC_LENGTH], partition, offset, obstacle, reason[:MAX_REASON_CHARACTERS])


@dataclass(frozen=True, slots=True)
class Policy:
    """The sweeper's own part in the decision: the registration says the rest, where it can."""

    redeliver_to_origin: bool
    dead_letter_template: str
    redeliver_by_default: bool
    max_deliveries_by_default: int

    @classmethod
    def of(cls, settings: Settings) -> Policy:
        """Take the policy from the settings."""
        sweeper = settings.sweeper
        return cls(
            sweeper.redeliver_to == "origin",
            sweeper.default_dead_letter_topic or settings.dead_letter.topic,
            sweeper.default_expiry_policy == "redeliver",
            sweeper.default_max_deliveries,
        )


def outgoing(row: DueRow, policy: Policy, targets: Callable[[str], Target], now_ms: int) -> Outgoing | SetAside:
    """Decide what is published for a due row.

    Args:
        row: the registration.
        policy: the sweeper's defaults.
        targets: looks a topic up.
        now_ms: time of dead-lettering, ms since the epoch.

    Returns:
        The redelivery while the row's policy and deliveries allow it and it fits, else the dead letter; or the reason
        why neither can be written.
    """
    try:
        require_sendable_names(row.record.original.headers)
        candidates = [_redelivery(row, policy), _dead_letter(row, policy, now_ms)]
    except (DataError, ConfigurationError) as error:
        return set_aside(row, Obstacle.UNREADABLE, str(error))
    reason = ""
    for candidate in candidates:
        if candidate is None:
            continue
        target = targets(candidate.topic)
        if target.problem is not None:
            return set_aside(row, Obstacle.NO_TOPIC, target.problem)
        if candidate.partition is not None and candidate.partition >= target.partitions:
            return set_aside(row, Obstacle.NO_TOPIC, f"{target.topic} has no partition {candidate.partition} any more")
        if candidate.key is None and target.compacted:
            return set_aside(row, Obstacle.NO_KEY, _without_key(target))
        size = record_size(candidate.key, candidate.value, candidate.headers)
        if size <= target.max_message_bytes:
            return candidate
        reason = _too_large(target, size)
    return set_aside(row, Obstacle.TOO_LARGE, reason)


def set_aside(row: DueRow, obstacle: Obstacle, reason: str) -> SetAside:
    """Name a row that stays, for log and metrics."""
    original = row.record.original
    return SetAside.at(row.record.wait_id, original.topic, original.partition, original.offset, obstacle, reason)


def _redelivery(row: DueRow, policy: Policy) -> Outgoing | None:
    record = row.record
    again = policy.redeliver_by_default if record.expiry_policy is None else record.expiry_policy == "redeliver"
    delivery, limit = record.delivery or 1, record.max_deliveries or policy.max_deliveries_by_default
    # Without a group nobody could count the deliveries on, and there is no topic of its own.
    if not again or not record.group or delivery >= limit:
        return None
    original = record.original
    headers = redelivery_headers(original.headers, _lineage(row, delivery + 1))
    if policy.redeliver_to_origin:
        return _published(row, original.topic, original.partition, headers, Outcome.REDELIVERED)
    return _published(row, redelivery_topic(original.topic, record.group), None, headers, Outcome.REDELIVERED)


def _dead_letter(row: DueRow, policy: Policy, now_ms: int) -> Outgoing:
    record = row.record
    topic = record.dead_letter_topic or dead_letter_topic(
        policy.dead_letter_template, record.original.topic, record.group or ""
    )
    headers = dead_letter_headers(record.original.headers, _lineage(row, record.delivery), _expired(row, now_ms))
    return _published(row, topic, None, headers, Outcome.EXPIRED)


def _expired(row: DueRow, now_ms: int) -> Failure:
    record = row.record
    message = (
        f"no outcome by {format_utc_ms(record.expires_at_ms)}; registered by instance {record.instance or 'unknown'} "
        f"of group {record.group or 'unknown'}, delivery {record.delivery or 1}"
    )
    return Failure(Reason.EXPIRED, "WaitExpired", message, None, now_ms)


def _lineage(row: DueRow, delivery: int | None) -> Lineage:
    record = row.record
    return Lineage.of(
        record.original,
        wait_id=record.wait_id,
        wait_partition=row.wait_partition,
        wait_offset=row.wait_offset,
        group=record.group,
        instance=record.instance,
        delivery=delivery,
    )


def _published(
    row: DueRow,
    topic: str,
    partition: int | None,
    headers: Sequence[tuple[str, bytes | None]],
    outcome: Outcome,
) -> Outgoing:
    original = row.record.original
    return Outgoing(
        topic,
        partition,
        original.key,
        original.value,
        list(headers),
        row.record.wait_id,
        row.wait_partition,
        outcome,
    )


def _too_large(target: Target, size: int) -> str:
    return (
        f"{size} bytes with its headers, {target.topic} takes {target.max_message_bytes}. Raise it: "
        f"kafka-configs --alter --topic {target.topic} --add-config max.message.bytes={size}"
    )


def _without_key(target: Target) -> str:
    return (
        f"the record has no key and {target.topic} is compacted, which takes none such. Change it: "
        f"kafka-configs --alter --topic {target.topic} --add-config cleanup.policy=delete"
    )
