"""How far a replay has come: what of its ranges was polled, what is settled, and what is left."""

from __future__ import annotations

from collections.abc import Mapping

from processor.intake.assigned_log import AssignedLog
from wait_registry.records.topics import TopicPartition


class Progress:
    """The ranges of a replay.

    Args:
        ranges: offsets by partition, none of them empty.
    """

    def __init__(self, ranges: Mapping[TopicPartition, range]) -> None:
        self.ranges = dict(ranges)
        # Offsets of the next record.
        self._polled = {place: offsets.start for place, offsets in ranges.items()}
        self._settled = dict(self._polled)
        self._read: set[TopicPartition] = set()

    def note_polled(self, place: TopicPartition, offset: int) -> None:
        """Note that records of the range below an offset were polled."""
        self._polled[place] = offset

    def note_settled(self, place: TopicPartition, offset: int) -> None:
        """Note that the polled records below an offset are settled."""
        self._settled[place] = offset

    def note_read(self, log: AssignedLog) -> bool:
        """Return whether a range was read to its end just now, for the first time."""
        end = self.ranges[log.place].stop
        if log.place in self._read or max(log.position, log.end_seen) < end:
            return False
        self._read.add(log.place)
        return True

    def note_rewound(self, place: TopicPartition, offset: int) -> None:
        """Note that the records from an offset on will be polled again."""
        self._polled[place] = min(self._polled[place], offset)
        self._read.discard(place)

    def is_read(self, place: TopicPartition) -> bool:
        """Return whether the range of a partition was read to its end."""
        return place in self._read

    def reached(self, _: Mapping[TopicPartition, AssignedLog]) -> bool:
        """Return whether all ranges were read, for the pipeline, which asks `Once` for the same by the logs."""
        return self._read == self.ranges.keys()

    def left(self) -> dict[TopicPartition, range]:
        """Return what isn't settled; the rest of a range begins at its first unsettled record."""
        return {
            place: range(self._settled[place], offsets.stop)
            for place, offsets in self.ranges.items()
            if place not in self._read or self._settled[place] < self._polled[place]
        }
