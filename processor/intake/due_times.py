"""When the records of a delayed partition may be handled (D1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

# Of as many polls it is known when they were: each has records that the ones before hadn't.
_MOST_POLLS: Final = 1_000


class DueTimes:
    """Says which records are due; of the first one that isn't, it remembers when it will be.

    A record is due a delay after its timestamp, or after it was polled first if that was earlier: none waits longer.
    Producers may set any timestamp in an input topic, and in a retry topic whose timestamp type was changed.

    Args:
        delay_s: the delay, s.
        retries: whether it is a retry topic.

    Attributes:
        next_ms: when the first record that wasn't due is due, ms since the epoch.
    """

    __slots__ = ("_delay_ms", "_polls", "delay_s", "next_ms", "retries")

    def __init__(self, delay_s: float, retries: bool) -> None:
        self.delay_s = delay_s
        self.retries = retries
        self._delay_ms = round(delay_s * 1000)
        self._polls: deque[tuple[int, int]] = deque(maxlen=_MOST_POLLS)  # the last offset, and when
        self.next_ms = 0

    def due(self, offsets: Sequence[int], timestamps_ms: Sequence[int], now_ms: int) -> int:
        """Return how many of the records just polled are due, from the first on.

        Args:
            offsets: of the records.
            timestamps_ms: of the records; -1 is none.
            now_ms: the present moment.
        """
        if offsets and (not self._polls or offsets[-1] > self._polls[-1][0]):
            self._polls.append((offsets[-1], now_ms))
        for index, (offset, timestamp_ms) in enumerate(zip(offsets, timestamps_ms, strict=True)):
            due_ms = self._since_ms(offset, timestamp_ms) + self._delay_ms
            if due_ms > now_ms:
                self.next_ms = due_ms
                return index
        return len(offsets)

    def _since_ms(self, offset: int, timestamp_ms: int) -> int:
        while self._polls[0][0] < offset:
            self._polls.popleft()
        polled_ms = self._polls[0][1]
        return timestamp_ms if 0 <= timestamp_ms < polled_ms else polled_ms
