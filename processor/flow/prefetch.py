"""How many records are polled and not finished: enough to keep all worker slots busy, and no more (P7)."""

from __future__ import annotations

import math

from processor.flow.concurrency import ConcurrencyLimit

RATE_WINDOW_S = 0.5
# Where calls wait for the broker: what is finished while it answers.
ANSWERED_S = 0.2
ANSWERED_SLACK = 16
# Where they don't: what is finished between two polls.
POLLED_S = 0.02
POLLED_SLACK = 4
SIZE_WEIGHT = 0.2


class Prefetch:
    """The limit of unfinished records, from the number of worker slots and the measured completion rate (P7).

    While calls wait for acknowledgments: N + max(N + 16, what is finished in 0.2 s). A fixed limit costs up to 11 % at
    N = 2,000, and registers records 14 s early at N = 10. Else N + max(4, what is finished in 0.02 s): what waits for a
    slot for long is registered in `deferred`, although its call may be quick. Both are capped.

    Args:
        limit: how many calls may run (N).
        max_records: the cap.
        max_bytes: cap of keys, values and headers together, bytes.
    """

    def __init__(self, limit: ConcurrencyLimit, max_records: int, max_bytes: int) -> None:
        self._limit = limit
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._rate = 0.0
        self._since_s = -math.inf
        self._finished = 0
        self._mean_size = 0.0

    def observe(self, now_s: float, finished: int) -> None:
        """Note the number of records finished since the start, at ``now_s`` of the monotonic clock."""
        elapsed_s = now_s - self._since_s
        if elapsed_s < RATE_WINDOW_S:
            return
        self._rate = (finished - self._finished) / elapsed_s
        self._since_s, self._finished = now_s, finished

    def observe_size(self, records: int, size: int) -> None:
        """Note the bytes of the records just polled, so that the next poll keeps to the byte limit."""
        if records:
            self._mean_size += SIZE_WEIGHT * (size / records - self._mean_size)

    def bound(self, calls_wait: bool) -> int:
        """Return how many records may be unfinished; ``calls_wait`` is whether calls wait for acknowledgments."""
        n = self._limit.current
        least, while_s = (n + ANSWERED_SLACK, ANSWERED_S) if calls_wait else (POLLED_SLACK, POLLED_S)
        return min(self._max_records, n + max(least, math.ceil(while_s * self._rate)))

    def capacity(self, outstanding: int, outstanding_bytes: int, calls_wait: bool, behind: int = 0) -> int:
        """Return how many records may be polled now, given those registered and not finished.

        By bytes this is an estimate from the mean size: one poll may pass the limit, and the next one waits then.

        Args:
            outstanding: records polled and not finished.
            outstanding_bytes: their size, bytes.
            calls_wait: whether calls wait for acknowledgments.
            behind: how many of them wait for an earlier record of their key: only the caps count these.
        """
        capacity = min(self.bound(calls_wait) + behind, self._max_records) - outstanding
        bytes_left = self._max_bytes - outstanding_bytes
        if capacity <= 0 or bytes_left <= 0:
            return 0
        if self._mean_size > 0:
            capacity = min(capacity, max(1, int(bytes_left / self._mean_size)))
        return capacity

    def share(self, partitions: int) -> int:
        """Return how many records of one partition may wait for earlier ones, so that one can't fill the prefetch."""
        return max(1, self._max_records // (partitions + 1))

    def below_caps(self, outstanding: int, outstanding_bytes: int) -> bool:
        """Return whether records and bytes are below their caps, whatever the limit is."""
        return outstanding < self._max_records and outstanding_bytes < self._max_bytes
