"""How many records are polled and not finished: enough to keep all worker slots busy, and no more (P7)."""

from __future__ import annotations

import math

from processor.entry import Entry, EntryState

RATE_WINDOW_S = 0.5
RATE_SHARE_S = 0.2
SMALLEST_SLACK = 16
SIZE_WEIGHT = 0.2


class Prefetch:
    """The limit of unfinished records, from the number of worker slots and the measured completion rate (P7).

    At most N + max(N + 16, records that finish in 0.2 s), capped. A fixed limit costs up to 11 % at N = 2,000 and
    registers records 14 s early at N = 10.

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
        """Note the number of records finished since the start, at ``now_s`` of the monotonic clock."""
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
        """Note the bytes of the records just polled, so that the next poll keeps to the byte limit."""
        if records:
            self._mean_size += SIZE_WEIGHT * (size / records - self._mean_size)

    def capacity(self, outstanding: int, outstanding_bytes: int) -> int:
        """Return how many records may be polled now, given those registered and not finished.

        By bytes this is an estimate from the mean size: one poll may pass the limit, and the next one waits then.
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
    """Counts unfinished records and their bytes, and the records finished since the start."""

    __slots__ = ("finished", "records", "size")

    def __init__(self) -> None:
        self.records = 0
        self.size = 0
        self.finished = 0

    def add(self, records: int, size: int) -> None:
        """Count records just polled, with ``size`` bytes in total."""
        self.records += records
        self.size += size

    def finish(self, entry: Entry) -> None:
        """Remove a record that has its outcome; do nothing if it is removed already."""
        if self._take_out(entry, EntryState.FINISHED):
            self.finished += 1

    def drop(self, entry: Entry) -> None:
        """Remove a record that the next owner will handle; do nothing if it is removed already."""
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
    """Decides when to poll without capacity, when to pause and when to resume.

    A member must poll to take part in rebalances, and a poll may return a record. Pausing at once would drop what
    librdkafka has fetched (up to 16 MiB) each time that handlers are slower than half a second. So the first few
    records are buffered, unregistered, and only then are the partitions paused.
    """

    def __init__(self) -> None:
        self.paused = False
        self._polled_s = -math.inf

    def polled(self, now_s: float) -> None:
        """Note a poll, at ``now_s`` of the monotonic clock."""
        self._polled_s = now_s

    def poll_due(self, now_s: float) -> bool:
        """Return whether to poll although there is no capacity."""
        return now_s - self._polled_s >= POLL_EVERY_S

    def pause_due(self, buffered: int) -> bool:
        """Return whether to pause now, given the number of buffered records."""
        return not self.paused and buffered >= PAUSE_AT

    def resume_due(self, capacity: int, whole: int) -> bool:
        """Return whether to resume now: a quarter of the capacity without any unfinished record is free.

        Args:
            capacity: how many records may be polled now.
            whole: how many could be polled if none were unfinished, by the tighter of the two limits (records, bytes).
                By the other one, a processor that has finished all records might wait indefinitely.
        """
        return self.paused and capacity * RESUME_SHARE >= whole
