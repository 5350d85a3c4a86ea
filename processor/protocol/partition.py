"""One assignment of one partition: what is due, what was polled, what is safe, and what may be committed."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from wait_registry.errors import PermanentError
from wait_registry.records.topics import TopicPartition

UNKNOWN: Final = -1
_OPEN: Final = b"\0"
# By no more than this part of the delay does a record wait longer, so that few ends of the log are remembered.
_PARTS: Final = 500


class PartitionError(PermanentError):
    """The offsets of a partition contradict one another: a fault of the program. The process ends."""


class Recorded(NamedTuple):
    """What a commit's metadata says of its process: how many uncommitted records it may have, and when it registers.

    None is unknown.
    """

    uncommitted_max: int | None
    mode: str | None


class WarmUp(NamedTuple):
    """The first records of an assignment, which a previous owner may have registered; `math.inf` is no limit.

    ``records`` is how many they are at most, and ``end`` the offset from which on no record belongs to them.
    """

    records: float
    end: float


NOTHING_RECORDED: Final = Recorded(None, None)
NO_WARM_UP: Final = WarmUp(0, 0)


class DueTimes:
    """Says which records are due; of the first one that isn't, it remembers when it will be.

    A record is due a delay after its timestamp, or after the log was seen to have it if that was earlier. Producers may
    set any timestamp in an input topic, and in a retry topic whose timestamp type was changed. While the first record
    waits, its partition is paused: what comes meanwhile isn't polled, and is seen by the end of the log alone.

    Args:
        delay_s: the delay, s.
        retries: whether it is a retry topic.

    Attributes:
        next_ms: when the first record that wasn't due is due, ms since the epoch.
        seen_end: below this offset all are due, whatever their timestamps; -1 until the log was seen for a delay.
    """

    def __init__(self, delay_s: float, retries: bool) -> None:
        self.delay_s = delay_s
        self.retries = retries
        self._delay_ms = round(delay_s * 1000)
        self._ends: deque[tuple[int, int]] = deque()  # an end of the log, and when it was seen
        self.next_ms = 0
        self.seen_end = -1

    def seen(self, end: int, now_ms: int) -> None:
        """Note that the log has all records below an offset now; one call every few seconds bounds the waits."""
        ends = self._ends
        if end > (ends[-1][0] if ends else self.seen_end):
            if len(ends) > 1 and (now_ms - ends[-2][1]) * _PARTS < self._delay_ms:
                ends.pop()
            ends.append((end, now_ms))
        while ends and ends[0][1] + self._delay_ms <= now_ms:
            self.seen_end = ends.popleft()[0]

    def due(self, offsets: Sequence[int], timestamps_ms: Sequence[int], now_ms: int) -> int:
        """Return how many of the records just polled are due, from the first on; the timestamp -1 is none."""
        if offsets:
            self.seen(offsets[-1] + 1, now_ms)
        ends = iter(self._ends)
        end, seen_ms = self.seen_end, now_ms - self._delay_ms
        for index, (offset, timestamp_ms) in enumerate(zip(offsets, timestamps_ms, strict=True)):
            while offset >= end:
                end, seen_ms = next(ends)
            due_ms = _since_ms(timestamp_ms, seen_ms) + self._delay_ms
            if due_ms > now_ms:
                self.next_ms = due_ms
                return index
        return len(offsets)


def _since_ms(timestamp_ms: int, seen_ms: int) -> int:
    return timestamp_ms if 0 <= timestamp_ms < seen_ms else seen_ms


class Partition:
    """Keeps ``confirmed <= requested <= committable <= position``, and enforces it.

    All are offsets of the next record, `UNKNOWN` before the first: ``position`` below which every record was polled,
    ``committable`` below which every record is settled or registered, ``requested`` of the highest commit that was
    sent, which may be done whatever its answer was, ``confirmed`` of the last commit that the broker confirmed.

    A record costs nine bytes here until a confirmed commit covers it.

    Args:
        place: topic and number.
        start: the committed offset, None if there is none.
        warm_up: which of its records belong to the warm-up.
        recorded: what commits of this assignment record until one covers the warm-up.
        due_times: when its records are due; None if they are due at once.
        is_announced: whether a confirmed commit says what this process may do beyond it.
    """

    def __init__(
        self,
        place: TopicPartition,
        start: int | None,
        warm_up: WarmUp = NO_WARM_UP,
        recorded: Recorded = NOTHING_RECORDED,
        due_times: DueTimes | None = None,
        is_announced: bool = True,
    ) -> None:
        self.place = place
        self.position = self.requested = self.confirmed = UNKNOWN if start is None else start
        self._warm_up_records, self._warm_up_end = warm_up
        self.recorded = recorded
        self.due_times = due_times
        self.is_announced = is_announced
        self.retries = due_times is not None and due_times.retries  # whether it belongs to a retry topic
        # When the last confirmed commit was sent; then, at least, the partition was still this process's.
        self.confirmed_s = -math.inf
        # Records that no confirmed commit covers: their offsets, and a byte each that is 1 if a commit may pass it.
        self._offsets = array("q")
        self._safe = bytearray()
        self._first = 0  # the number of the first of them

    def __repr__(self) -> str:
        return f"{self.place[0]}[{self.place[1]}]"

    @property
    def uncommitted(self) -> int:
        """How many records were polled and aren't below the confirmed offset."""
        return len(self._offsets)

    @property
    def polled(self) -> int:
        """How many records were polled in this assignment; the number of the next one."""
        return self._first + len(self._offsets)

    @property
    def committable(self) -> int:
        """The offset below which every record is settled or registered."""
        open_at = self._safe.find(_OPEN)
        return self.position if open_at < 0 else self._offsets[open_at]

    @property
    def came_from_s(self) -> float:
        """The delay of its retry topic, s; 0 if it is of another topic."""
        return self.due_times.delay_s if self.due_times is not None and self.retries else 0

    def begin(self, offset: int) -> None:
        """Take the offset of a log's first record: nothing precedes it, so there is nothing to commit."""
        self.position = self.requested = self.confirmed = offset

    def add(self, offsets: array[int]) -> None:
        """Take the offsets of records just polled, in their order.

        Raises:
            PartitionError: they don't follow what was polled before.
        """
        if not offsets:
            return
        if offsets[0] < self.position:
            raise PartitionError(f"{self!r}: polled offset {offsets[0]} again, the position is {self.position}")
        if self.position == UNKNOWN:
            self.begin(offsets[0])
        self._offsets.extend(offsets)
        self._safe.extend(bytes(len(offsets)))
        self.position = offsets[-1] + 1

    def read_to(self, offset: int) -> None:
        """Note that no record is left to poll below an offset: transaction markers or aborted records precede it."""
        self.position = max(self.position, offset)

    def make_safe(self, number: int) -> None:
        """Note that a commit may pass this record: it is registered or settled."""
        index = number - self._first
        if index >= 0:
            self._safe[index] = 1

    def in_warm_up(self, number: int, offset: int) -> bool:
        """Return whether a record belongs to the warm-up."""
        return number < self._warm_up_records and offset < self._warm_up_end

    def ends_warm_up(self, offset: int) -> bool:
        """Return whether no record at or after an offset belongs to the warm-up."""
        return not self.in_warm_up(self._first + bisect_left(self._offsets, offset), offset)

    def request(self) -> int:
        """Return the offset to commit now, and note that it is requested."""
        target = self.committable
        if target > self.position or target < self.requested:
            raise PartitionError(f"{self!r}: can't commit {target} (requested {self.requested}, at {self.position})")
        self.requested = target
        return target

    def confirm(self, offset: int, sent_s: float) -> None:
        """Note a confirmed commit, which may be an old one, and when it was sent, on the clock that never steps.

        Raises:
            PartitionError: the broker confirmed what was never requested.
        """
        if offset > self.requested:
            raise PartitionError(f"{self!r}: {offset} is confirmed, requested was {self.requested}")
        self.confirmed_s = max(self.confirmed_s, sent_s)
        self.is_announced = True
        if offset <= self.confirmed:
            return
        self.confirmed = offset
        covered = bisect_left(self._offsets, offset)
        del self._offsets[:covered], self._safe[:covered]
        self._first += covered

    def last_commit(self, first_unstarted: int | None) -> int:
        """Return the offset for the commit with which the partition is given up, and note that it is requested.

        Records that haven't started go to the next owner, so the commit stops at the first of them. What an earlier
        request may have passed stays with this process: ``first_unstarted`` is at or above ``requested``.
        """
        committable = self.committable
        if first_unstarted is not None:
            committable = min(committable, first_unstarted)
        self.requested = max(self.requested, committable)
        return self.requested
