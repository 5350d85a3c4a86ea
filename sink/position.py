"""How far a partition has been read, and up to which time that is known to be all: pure decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from wait_registry.errors import WaitRegistryError
from wait_registry.records.tombstone import oldest_allowed

# Only closed segments are compacted, those of an hour (segment.ms) or 1 GiB by default: 18 MB/s on one partition would
# fill one in a minute. An idle position is written at least as often, so an ordinary restart stays below it.
UNTOUCHED = timedelta(minutes=1)

# What a timestamptz may be for every client to read it back: years 1 to 9999 (ms).
SHOWABLE_MS: Final = range(-62_135_596_800_000, 253_402_300_800_000)


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Position:
    """``position_time`` is a lower bound on the broker time of any record at or above ``next_offset``.

    Not so while that is below ``read_until``, where the log ended when it began to be read from its start: until then
    it only says since when nothing can have been compacted away unseen, and the tables aren't that fresh.
    """

    next_offset: int
    position_time: datetime
    read_until: int = 0


Positions = Mapping[TopicPartition, Position]


class PositionExpired(WaitRegistryError):
    """Compaction may have removed tombstones that were not seen: run ``waitreg rebuild`` (again), then start again."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where the logs end (high watermark) and a time before which every record below that was appended or not at all.

    ``listed_at`` is Postgres' clock, read *before* the ends were listed: a record at or above an end is younger.
    """

    ends: Mapping[TopicPartition, int]
    listed_at: datetime


def advanced(
    position: Position, end_offset: int | None, last_append_ms: int | None, end: int, listed_at: datetime
) -> Position:
    """Return the position after a batch, also of a partition that it didn't move: its time may have.

    ``end_offset`` is where the batch ended (None: it had nothing of the partition), ``last_append_ms`` the append time
    of its last record (None when it had none, only transaction markers; a foreign record's may be any number, and then
    means nothing). At the log's ``end`` the time is that of reading; before it the last record's append time, since the
    broker's clock gave the next one the same or a later one; it never goes back.
    """
    end_offset = position.next_offset if end_offset is None else end_offset
    if end_offset >= end:
        return replace(position, next_offset=end_offset, position_time=listed_at)
    if last_append_ms is None or last_append_ms not in SHOWABLE_MS:
        return replace(position, next_offset=end_offset)
    newest = max(position.position_time, min(moment(last_append_ms), listed_at))
    return replace(position, next_offset=end_offset, position_time=newest)


def refreshed(positions: Positions, ends: LogEnds) -> dict[TopicPartition, Position]:
    """Return positions of an idle stream: those at their log's end are as fresh as the listing."""
    return {
        name: replace(position, position_time=ends.listed_at)
        if position.next_offset >= ends.ends.get(name, position.next_offset + 1)
        else position
        for name, position in positions.items()
    }


def require_fresh(positions: Positions, ends: LogEnds, delete_retention_ms: int) -> None:
    """Refuse to read on from a position older than half of the topic's delete.retention.ms.

    Compaction may then have removed tombstones that lie at or above the position and were never seen. A position at
    the log's end has nothing to miss. Raises `PositionExpired`.
    """
    limit = oldest_allowed(delete_retention_ms)
    for name, position in sorted(positions.items()):
        age = ends.listed_at - position.position_time
        unread = ends.ends[name] - position.next_offset
        if unread > 0 and age > limit:
            raise PositionExpired(
                f"the position {position.next_offset} of {name} dates from {position.position_time:%Y-%m-%d %H:%M:%S}Z,"
                f" {_hours(age)} ago, and {unread} offsets follow it; after half of delete.retention.ms"
                f" ({_hours(limit)}) tombstones may be gone that the sink has not seen. Run `waitreg rebuild`, then"
                " start the sink again"
            )


def require_read_in_time(name: TopicPartition, listed_at: datetime, now: datetime, delete_retention_ms: int) -> None:
    """Refuse what a long reading of a whole partition came to; call it after the reading.

    A wait may have been read before its tombstone was written or passed by the cleaner, and the tombstone have been
    removed before the reading came to it. ``listed_at`` is Postgres' clock before the reading began, ``now`` after it.
    Raises `PositionExpired`.
    """
    limit, took = oldest_allowed(delete_retention_ms), now - listed_at
    if took > limit:
        raise PositionExpired(
            f"the rebuild has taken {_hours(took)} for {name}, half of delete.retention.ms is {_hours(limit)}:"
            " tombstones may have gone before it came to them, so nothing of this partition was changed. Run"
            " `waitreg rebuild` again; if nothing held it up, raise the topic's delete.retention.ms first"
        )


def whole_from(
    positions: Positions,
    never_read: Collection[TopicPartition],
    ends: LogEnds,
    earlier: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return, for each partition, the offset from which the log is read before compaction can have touched it.

    That is all of it while the sink keeps up. What lay unread for longer, or was there before the first reading, may
    have lost its waits and kept their tombstones: there a tombstone without a wait means nothing. ``earlier`` is what
    was returned at this stream's last start: a stretch that it broke off in stays what it was, however fresh the
    position has become (that of a first start is).
    """
    found = {
        name: ends.ends[name]
        if name in never_read or ends.listed_at - position.position_time > UNTOUCHED
        else position.next_offset
        for name, position in positions.items()
    }
    return {name: max(offset, earlier.get(name, 0)) for name, offset in found.items()}


def moment(time_ms: int) -> datetime:
    """Return ms since the epoch as a time in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)


def showable(time_ms: int | None) -> datetime | None:
    """Return ms since the epoch as a time in UTC; None for no timestamp (-1) and for what a timestamptz can't show."""
    return moment(time_ms) if time_ms is not None and time_ms != -1 and time_ms in SHOWABLE_MS else None


def clamped(time_ms: int) -> int:
    """Return the nearest time (ms) that a timestamptz can show; a foreign record's may be any number."""
    return max(SHOWABLE_MS[0], min(time_ms, SHOWABLE_MS[-1]))


def _hours(duration: timedelta) -> str:
    return f"{duration.total_seconds() / 3600:.1f} h"
