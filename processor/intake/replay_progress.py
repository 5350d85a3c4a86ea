"""How far a replay has come: what of its ranges was polled, what is settled, and what is left."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from processor.intake.assigned_log import AssignedLog
from wait_registry.kafka.offset_ranges import ranges_text
from wait_registry.records.times import format_utc_ms
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

LOG_EVERY_S: Final = 10.0


class Window(NamedTuple):
    """The timestamps of the records that are handled, ms since 1970: from the first on, below the second."""

    from_ms: int
    to_ms: int


class ReplayProgress:
    """The ranges of a replay.

    Args:
        ranges: offsets by partition, none of them empty.
        window: which of their records are handled; all if it is None. A log isn't ordered by the timestamps that
            producers set, so each record is looked at.
    """

    def __init__(self, ranges: Mapping[TopicPartition, range], window: Window | None = None) -> None:
        self.ranges = dict(ranges)
        self._window = window
        # Offsets of the next record.
        self._polled = {place: offsets.start for place, offsets in ranges.items()}
        self._settled = dict(self._polled)
        self._read: set[TopicPartition] = set()
        self._logged_s = time.monotonic()

    def takes(self, timestamp_ms: int) -> bool:
        """Return whether a record of the ranges is handled."""
        return self._window is None or self._window.from_ms <= timestamp_ms < self._window.to_ms

    def note_polled(self, place: TopicPartition, offset: int) -> None:
        """Note that records of the range below an offset were polled."""
        self._polled[place] = offset

    def note_settled(self, place: TopicPartition, offset: int) -> None:
        """Note that the polled records below an offset are settled."""
        self._settled[place] = offset

    def note_read(self, log: AssignedLog) -> bool:
        """Return whether a range was read to its end just now, for the first time."""
        end = self.ranges[log.place].stop
        if log.place in self._read or log.position < end:
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
        """Return whether all ranges were read, for the run, which asks `StopAtEnds` for the same by the logs."""
        return self._read == self.ranges.keys()

    def left(self) -> dict[TopicPartition, range]:
        """Return what isn't settled; the rest of a range begins at its first unsettled record."""
        return {
            place: range(self._settled[place], offsets.stop)
            for place, offsets in self.ranges.items()
            if place not in self._read or self._settled[place] < self._polled[place]
        }

    def log_left(self) -> None:
        """Log what is left, if that wasn't done lately."""
        if time.monotonic() - self._logged_s >= LOG_EVERY_S:
            self._logged_s = time.monotonic()
            log.info("%d offsets are left: %s", sum(map(len, self.left().values())), self.rest())

    def rest(self) -> str:
        """Return the command that handles what is left."""
        times = ""
        if self._window is not None:
            times = f"--from-time {format_utc_ms(self._window.from_ms)} --to-time {format_utc_ms(self._window.to_ms)} "
        return f"waitreg replay {times}{ranges_text(self.left())}"
