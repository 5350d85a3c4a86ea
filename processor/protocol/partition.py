"""One assignment of one partition: what was polled, what is safe, and what may be committed."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

from processor.protocol.due_times import DueTimes
from wait_registry.errors import PermanentError
from wait_registry.records.topics import TopicPartition

UNKNOWN: Final = -1
_OPEN: Final = b"\0"


class PartitionError(PermanentError):
    """The offsets of a partition contradict one another: a fault of the program. The process ends."""


class Recorded(NamedTuple):
    """What a commit's metadata says of its process: how many uncommitted records it may have, and when it registers.

    None is unknown.
    """

    uncommitted_max: int | None
    mode: str | None


class Partition:
    """Keeps ``confirmed <= requested <= committable <= position``, and enforces it.

    All are offsets of the next record, `UNKNOWN` before the first: ``position`` below which every record was polled,
    ``committable`` below which every record is settled or registered, ``requested`` of the highest commit that was
    sent, which may be done whatever its answer was, ``confirmed`` of the last commit that the broker confirmed.

    A record costs nine bytes here until a confirmed commit covers it.

    Args:
        place: topic and number.
        start: the committed offset, None if there is none.
        warm_up_records: how many of the first records belong to the warm-up, `math.inf` without a limit.
        warm_up_end: offset from which on no record belongs to it, `math.inf` without a limit.
        recorded: what commits of this assignment record until one covers the warm-up.
        due_times: when its records are due; None if they are due at once.
    """

    __slots__ = (
        "_first",
        "_offsets",
        "_safe",
        "confirmed",
        "confirmed_s",
        "due_times",
        "place",
        "position",
        "recorded",
        "requested",
        "retries",
        "warm_up_end",
        "warm_up_records",
    )

    def __init__(
        self,
        place: TopicPartition,
        start: int | None,
        warm_up_records: float = 0,
        warm_up_end: float = math.inf,
        recorded: Recorded | None = None,
        due_times: DueTimes | None = None,
    ) -> None:
        self.place = place
        self.position = self.requested = self.confirmed = UNKNOWN if start is None else start
        self.warm_up_records = warm_up_records
        self.warm_up_end = warm_up_end
        self.recorded = recorded or Recorded(None, None)
        self.due_times = due_times
        # Whether it belongs to a retry topic.
        self.retries = due_times is not None and due_times.retries
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
        return number < self.warm_up_records and offset < self.warm_up_end

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
        """Note a confirmed commit, which may be an old one.

        Args:
            offset: what is committed.
            sent_s: when the commit was sent, on the clock that never steps.

        Raises:
            PartitionError: the broker confirmed what was never requested.
        """
        if offset > self.requested:
            raise PartitionError(f"{self!r}: {offset} is confirmed, requested was {self.requested}")
        self.confirmed_s = max(self.confirmed_s, sent_s)
        if offset <= self.confirmed:
            return
        self.confirmed = offset
        covered = bisect_left(self._offsets, offset)
        del self._offsets[:covered], self._safe[:covered]
        self._first += covered

    def last_commit(self, first_unstarted: int | None) -> int:
        """Return the offset for the commit with which the partition is given up, and note that it is requested.

        Records that haven't started go to the next owner, so the commit stops at the first of them. What an earlier
        request may have passed stays with this process.

        Args:
            first_unstarted: the lowest offset, at or above ``requested``, of a record whose call hasn't started.
        """
        committable = self.committable
        if first_unstarted is not None:
            committable = min(committable, first_unstarted)
        self.requested = max(self.requested, committable)
        return self.requested
