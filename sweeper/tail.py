"""What the tail of the wait topic says of a due row, and how old the position may be at which it starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from confluent_kafka import Message

from wait_registry.errors import TransientError
from wait_registry.records.tombstone import oldest_allowed

# Longer keys are no wait IDs, and their memory would not be bounded by the number of IDs.
WAIT_ID_BYTES = 36


class PositionOvertaken(TransientError):
    """Compaction may have removed tombstones that the tables don't show: only `waitreg rebuild` makes them exact."""


class TailTooLong(TransientError):
    """More IDs than sweeper.max_tail_records: skip the partition until the sink has caught up."""


@dataclass(frozen=True, slots=True)
class Position:
    """An offset up to which everything was seen; ``time`` is no later than any record from there on."""

    next_offset: int
    time: datetime


def require_not_overtaken(position: Position, end: int, now: datetime, delete_retention_ms: int) -> None:
    """Refuse a position that compaction may have overtaken; call it after the records from there on have been read.

    A tombstone remains for delete.retention.ms at least once it could have been compacted; half of it is the margin.

    Args:
        position: where the reading started.
        end: the log's end that was read up to; a position at the end had nothing to miss.
        now: by the clock of ``position.time``.
        delete_retention_ms: of the topic, ms.

    Raises:
        PositionOvertaken: run `waitreg rebuild`.
    """
    limit = oldest_allowed(delete_retention_ms)
    age = now - position.time
    if position.next_offset < end and age > limit:
        raise PositionOvertaken(
            f"the position {position.next_offset} of the tables is {age} old, the limit is {limit} (half of "
            "delete.retention.ms): compaction may have removed tombstones that the sink hasn't read. "
            "Run `waitreg rebuild`"
        )


class Verdict(StrEnum):
    """What tables and tail together say of a due row."""

    OPEN = "open"
    SUPERSEDED = "superseded"
    UNSEEN = "unseen"


class Tail:
    """The last entry of each wait ID in the wait topic from an offset on.

    Together with tables that are exact below ``start`` it is the exact state at the moment when it was read: any later
    entry of a row's ID supersedes the row, a tombstone because it settles it, a newer registration because it counts
    by its own expiry. The partition is compacted, so a row whose own wait record should be in the tail, and isn't, is
    not open either: a later entry has removed it.
    """

    def __init__(self, start: int, max_ids: int) -> None:
        """Start at an offset; the number of IDs that are held bounds the memory (about 160 bytes per ID)."""
        self.start = start
        self._max_ids = max_ids
        self._last: dict[bytes, int] = {}
        self._ignored: frozenset[bytes] = frozenset()

    def take(self, message: Message) -> None:
        """Add a record that was read; errors as `add`."""
        self.add(message.key(), message.offset(), message.timestamp()[1])

    def add(self, key: bytes | None, offset: int, timestamp_ms: int = 0) -> None:
        """Add a record; call in the order of offsets.

        Args:
            key, offset: of the record.
            timestamp_ms: its time by the broker's clock; only some policies of the tables need it.

        Raises:
            TailTooLong: there are too many IDs.
        """
        if key is None or len(key) > WAIT_ID_BYTES or key in self._ignored:
            return
        self._last[key] = offset
        if len(self._last) > self._max_ids:
            raise TailTooLong(
                f"entries of more than {self._max_ids} IDs from offset {self.start} on (sweeper.max_tail_records): "
                "the sink is too far behind"
            )

    def ignore(self, wait_ids: Iterable[str]) -> None:
        """Forget IDs that are settled, until the next call: their tombstones are read but not held."""
        self._ignored = frozenset(wait_id.encode() for wait_id in wait_ids)
        for key in self._ignored:
            self._last.pop(key, None)

    def verdict(self, wait_id: str, wait_offset: int) -> Verdict:
        """Judge a row of the tables by its wait ID and the offset of its wait record."""
        last = self._last.get(wait_id.encode(), -1)
        if last > wait_offset:
            return Verdict.SUPERSEDED
        if wait_offset >= self.start and last != wait_offset:
            return Verdict.UNSEEN
        return Verdict.OPEN
