"""How old the position may be up to which a view is exact. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from wait_registry.errors import TransientError


class PositionTooOld(TransientError):
    """Compaction may have removed tombstones that this view has not seen: only `waitreg rebuild` makes it exact."""


@dataclass(frozen=True, slots=True)
class Position:
    """An offset up to which everything was seen; ``time`` is no later than any record from there on."""

    next_offset: int
    time: datetime


def oldest_allowed(delete_retention_ms: int) -> timedelta:
    """Return how old a position may be: half of the topic's delete.retention.ms."""
    return timedelta(milliseconds=delete_retention_ms / 2)


def require_young(position: Position, end: int, now: datetime, delete_retention_ms: int) -> None:
    """Refuse a position that compaction may have overtaken; call it after the records from there on have been read.

    A tombstone stays for delete.retention.ms at least once it could have been compacted; half of it is the margin.

    Args:
        position: where the reading began.
        end: the log's end that was read up to; a position that was the end had nothing to miss.
        now: by the clock of ``position.time``.
        delete_retention_ms: of the topic, ms.

    Raises:
        PositionTooOld: run `waitreg rebuild`.
    """
    limit = oldest_allowed(delete_retention_ms)
    age = now - position.time
    if position.next_offset < end and age > limit:
        raise PositionTooOld(
            f"the view's position {position.next_offset} is {age} old, the limit is {limit} (half of "
            "delete.retention.ms): compaction may have removed tombstones that it hasn't seen. Run `waitreg rebuild`"
        )
