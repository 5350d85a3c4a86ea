"""How many records are polled and not finished: enough to keep all worker slots busy, and no more (P7)."""

from __future__ import annotations

import math

from processor.entry import Entry, EntryState

RATE_WINDOW_S = 0.5
RATE_SHARE_S = 0.2
SMALLEST_SLACK = 16
SIZE_WEIGHT = 0.2


class Prefetch:
    """The bound, from the number of handlers and the measured completion rate (P7).

    At most N + max(N + 16, what completes in 0.2 s), capped. A fixed bound costs up to 11 % at N = 2000 and registers
    records 14 s early at N = 10.

    Args:
        max_in_flight: handlers that run at once (N).
        max_records: the cap.
        max_bytes: cap of keys, values and headers together, bytes.
    """

    def __init__(self, max_in_flight: int, max_records: int, max_bytes: int) -> None:
        self._max_in_flight = max_in_flight
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._rate = 0.0
        self._since_s: float | None = None
        self._finished = 0
        self._mean_size = 0.0
        self.bound = self._decide()

    def observe(self, now_s: float, finished: int) -> None:
        """Take note of the number of records finished since the start, at ``now_s`` of the monotonic clock."""
        if self._since_s is None:
            self._since_s, self._finished = now_s, finished
            return
        elapsed_s = now_s - self._since_s
        if elapsed_s < RATE_WINDOW_S:
            return
        self._rate = (finished - self._finished) / elapsed_s
        self._since_s, self._finished = now_s, finished
        self.bound = self._decide()

    def observe_size(self, records: int, size: int) -> None:
        """Take note of the bytes of the records just consumed, so that the next fetch keeps to the byte bound."""
        if records:
            self._mean_size += SIZE_WEIGHT * (size / records - self._mean_size)

    def capacity(self, outstanding: int, outstanding_bytes: int) -> int:
        """Return how many records may be consumed now, given those registered and not finished.

        By bytes it is an estimate from the mean size: one fetch may pass the bound, then nothing more is consumed.
        """
        capacity = self.bound - outstanding
        bytes_left = self._max_bytes - outstanding_bytes
        if capacity <= 0 or bytes_left <= 0:
            return 0
        if self._mean_size > 0:
            capacity = min(capacity, max(1, int(bytes_left / self._mean_size)))
        return capacity

    def _decide(self) -> int:
        n = self._max_in_flight
        slack = max(n + SMALLEST_SLACK, math.ceil(RATE_SHARE_S * self._rate))
        return min(self._max_records, n + slack)


class Outstanding:
    """Counts records and bytes in look-ahead, and how many have finished since the start."""

    __slots__ = ("finished", "records", "size")

    def __init__(self) -> None:
        self.records = 0
        self.size = 0
        self.finished = 0

    def add(self, records: int, size: int) -> None:
        """Count records just consumed, with ``size`` bytes together."""
        self.records += records
        self.size += size

    def finish(self, entry: Entry) -> None:
        """Take a record out that has its outcome; does nothing for one that is out already."""
        if self._take_out(entry, EntryState.FINISHED):
            self.finished += 1

    def drop(self, entry: Entry) -> None:
        """Take a record out that the partition's next owner will handle; does nothing for one that is out already."""
        self._take_out(entry, EntryState.DROPPED)

    def _take_out(self, entry: Entry, state: EntryState) -> bool:
        if entry.state is EntryState.FINISHED or entry.state is EntryState.DROPPED:
            return False
        entry.state = state
        self.records -= 1
        self.size -= entry.size
        return True


POLL_EVERY_S = 0.5
PAUSE_AT = 4
RESUME_SHARE = 4


class Pausing:
    """Decides when to poll without room, when to pause and when to resume.

    A member must poll to take part in rebalances, and a poll may bring a record. Pausing at once would throw away what
    librdkafka has fetched ahead (up to 16 MiB) each time that handlers are slower than half a second; so
    the first few records are kept back, unregistered, and only then the partitions are paused.
    """

    def __init__(self) -> None:
        self.paused = False
        self._polled_s = -math.inf

    def polled(self, now_s: float) -> None:
        """Take note of a poll, at ``now_s`` of the monotonic clock."""
        self._polled_s = now_s

    def poll_due(self, now_s: float) -> bool:
        """Return whether to poll although there is no room."""
        return now_s - self._polled_s >= POLL_EVERY_S

    def pause_due(self, buffered: int) -> bool:
        """Return whether to pause now, with so many records kept back."""
        return not self.paused and buffered >= PAUSE_AT

    def resume_due(self, capacity: int, whole: int) -> bool:
        """Return whether to resume now: there is a quarter of the room that there would be with nothing in hand.

        Args:
            room: how many records may be consumed now.
            whole: how many could be if none were in hand, by whichever bound is tighter, that of records or that of
                bytes. Measured by anything larger, a processor that has finished all might wait for more for ever.
        """
        return self.paused and capacity * RESUME_SHARE >= whole
