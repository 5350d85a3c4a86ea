"""How many records are polled and not finished: enough to keep all worker slots busy, and no more (P7)."""

from __future__ import annotations

import math

RATE_WINDOW_S = 0.5
RATE_SHARE_S = 0.2
SLACK = 4
SLACK_TO_ACKNOWLEDGE = 16
SIZE_WEIGHT = 0.2


class Prefetch:
    """The limit of unfinished records, from the number of worker slots and the measured completion rate (P7).

    At most N + max(least slack, records that finish in 0.2 s), capped. A fixed limit costs up to 11 % at N = 2,000 and
    registers records 14 s early at N = 10.

    Args:
        max_in_flight: handlers that run at once (N).
        max_records: the cap.
        max_bytes: cap of keys, values and headers together, bytes.
        waits_for_acknowledgments: whether calls wait for the broker: the least slack is N + 16 then, else 4. What waits
            for a slot for long is registered in `deferred`, although its call may be quick.
    """

    def __init__(
        self, max_in_flight: int, max_records: int, max_bytes: int, *, waits_for_acknowledgments: bool = True
    ) -> None:
        self._max_in_flight = max_in_flight
        self._least_slack = max_in_flight + SLACK_TO_ACKNOWLEDGE if waits_for_acknowledgments else SLACK
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

    def below_caps(self, outstanding: int, outstanding_bytes: int) -> bool:
        """Return whether records and bytes are below their caps, whatever the limit is."""
        return outstanding < self._max_records and outstanding_bytes < self._max_bytes

    def _decide(self) -> int:
        n = self._max_in_flight
        slack = max(self._least_slack, math.ceil(RATE_SHARE_S * self._rate))
        return min(self._max_records, n + slack)
