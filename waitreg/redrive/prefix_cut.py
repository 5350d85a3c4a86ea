"""Decides which records of a dead letter topic may be deleted: Kafka deletes only a prefix of a partition."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Limit(StrEnum):
    """What a prefix ends at."""

    TIME = "the record there isn't old enough"
    END = "the partition ends there"
    POSITION = "the tables have read the topic up to there only"


class Obstacle(StrEnum):
    """Why no record of a prefix may be deleted."""

    OPEN = "it is an open dead letter: redrive or archive it first"
    NOT_IN_TABLES = (
        "the tables have no dead letter of it, so it may be open: it is too large for its table, or "
        "older than sweeper.retention_days"
    )


class Prefix(NamedTuple):
    """Records of a partition: from ``first`` on, before ``before``, which is there because of ``limit``."""

    first: int
    before: int
    limit: Limit

    @property
    def offsets(self) -> range:
        """Return the offsets of the records."""
        return range(self.first, self.before)


def prefix(first: int, recent: int | None, end: int, position: int | None) -> Prefix:
    """Return the records of a partition that are old enough and that the tables have read.

    Args:
        first: the first offset that the broker has.
        recent: the first offset whose record isn't old enough; None if all are.
        end: the offset after the last record.
        position: the offset up to which the tables have read the partition; None if they never have.
    """
    before, limit = end, Limit.END
    if recent is not None and recent < before:
        before, limit = recent, Limit.TIME
    read = first if position is None else position
    if read < before:
        before, limit = read, Limit.POSITION
    return Prefix(first, max(first, before), limit)


def obstacle(asked: Prefix, first_open: int | None, first_unknown: int | None) -> tuple[int, Obstacle] | None:
    """Return where the first record is that forbids the deletion of a prefix, and why; None if there is none.

    Args:
        asked: the prefix.
        first_open: the offset of the first open dead letter of the partition.
        first_unknown: the offset of its first record of which the tables have no dead letter.
    """
    offsets = {Obstacle.NOT_IN_TABLES: first_unknown, Obstacle.OPEN: first_open}
    below = [(offset, why) for why, offset in offsets.items() if offset is not None and offset in asked.offsets]
    return min(below, default=None)
