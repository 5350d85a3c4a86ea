"""Which offsets to read next, and how many: pure decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

from sink.position import TopicPartition

# A range has at most this many times the offsets of the one before: what was not read yet may be of any size.
GROWTH = 4
# Besides key, value and headers a record costs this much in columns.
OVERHEAD_BYTES = 64
# Poll sizes of Spark's consumers. Each size has consumers of its own, so there are few; the largest is Kafka's default.
POLL_RECORDS = (500, 100, 10, 1)


class Range(NamedTuple):
    """The offsets of a partition from ``begin`` up to, but without, ``end``."""

    begin: int
    end: int


Ranges = Mapping[TopicPartition, Range]


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """How many ``offsets`` the next ranges may have together.

    A range is planned in offsets. What it holds is known after it was read: no record at all in a gap that compaction
    left, or records of 100 bytes, or of a megabyte. So the limit follows what the last ranges held.
    """

    max_records: int
    max_bytes: int
    offsets: int

    @classmethod
    def careful(cls, max_records: int, max_bytes: int, largest_record_bytes: int) -> ReadLimit:
        """Return the limit to begin with: as many records as fit, even if each is as large as the topic allows."""
        return cls(max_records, max_bytes, max(1, min(max_records, max_bytes // largest_record_bytes)))

    def after(self, offsets: int, records: int, nbytes: int) -> ReadLimit:
        """Return the limit after ranges of ``offsets`` that held ``records`` of ``nbytes``."""
        size = nbytes + records * OVERHEAD_BYTES
        by_bytes = offsets * self.max_bytes // size if size else self.max_records
        most = GROWTH * self.offsets if offsets >= self.offsets else self.offsets
        return replace(self, offsets=max(1, min(by_bytes, most, self.max_records)))

    def halved(self, offsets: int) -> ReadLimit | None:
        """Return half the limit after ranges of ``offsets`` were too large, None if one offset already was."""
        return None if offsets <= 1 else replace(self, offsets=max(1, min(self.offsets, offsets) // 2))


def plan(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, Range]:
    """Return the ranges to read next, none if nothing is left.

    Every partition gets its share of what is left, so that all reach their ends together.

    Args:
        positions: where each partition continues.
        ends: up to where each can be read now.
        limit: how many offsets to read; a partition gets at least one, so with fewer offsets than partitions only
            those with the most left get any.
    """
    left = {name: ends[name] - offset for name, offset in positions.items() if ends.get(name, 0) > offset}
    chosen = sorted(left, key=lambda name: (-left[name], name))[:limit]
    total = sum(left[name] for name in chosen)
    return {
        name: Range(positions[name], positions[name] + min(left[name], ceil(limit * left[name] / total)))
        for name in sorted(chosen)
    }


def offsets_of(ranges: Ranges) -> int:
    """Return how many offsets the ranges have together."""
    return sum(each.end - each.begin for each in ranges.values())


def poll_records(ranges: Ranges) -> int:
    """Return how many records a consumer may hold at once for these ranges.

    Each partition's consumer keeps what its last poll returned, decompressed and uncounted, until Spark has asked for
    it. Kafka's default of 500 records is far more than a heap takes where a range has a few large ones.
    """
    wanted = offsets_of(ranges) // (2 * max(1, len(ranges)))
    return next((size for size in POLL_RECORDS if size <= wanted), 1)


def source_range(ranges: Ranges) -> dict[str, str]:
    """Return the options of Spark's Kafka source that choose ranges of one topic."""
    topic = next(iter(ranges)).topic
    options: dict[str, Any] = {
        "assign": [name.partition for name in ranges],
        "startingOffsets": {str(name.partition): each.begin for name, each in ranges.items()},
        "endingOffsets": {str(name.partition): each.end for name, each in ranges.items()},
    }
    return {option: json.dumps({topic: value}) for option, value in options.items()}
