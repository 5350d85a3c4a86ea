"""What a sweep did to one partition of the wait topic: a value that travels from Spark's workers to the driver."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sweeper.outgoing import SetAside
from wait_registry.records.topics import MAX_TOPIC_LENGTH

NAMED_SET_ASIDE = 20
# Kafka bounds the names of topics so, and those of groups hardly at all; nobody's group is longer.
MAX_GROUP_LENGTH = MAX_TOPIC_LENGTH
MAX_PARTITION = 2**31 - 1


class Skip(StrEnum):
    """Why a partition was left, wholly or from some chunk on; the next sweep begins it anew."""

    FENCED = "fenced"
    OPEN_TRANSACTION = "open_transaction"
    TAIL_TOO_LONG = "tail_too_long"
    POSITION_TOO_OLD = "position_too_old"
    TOPIC_CHANGED = "topic_changed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """Rows by what became of them; ``skip`` and ``reason`` when the partition wasn't finished.

    ``set_aside`` counts all such rows, ``named`` holds the first of them.
    """

    partition: int
    exported: int = 0
    redelivered: int = 0
    superseded: int = 0
    unseen: int = 0
    set_aside: int = 0
    named: tuple[SetAside, ...] = ()
    skip: Skip | None = None
    reason: str = ""
