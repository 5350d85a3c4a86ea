"""When the records of a delayed partition may be handled (D1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_NONE: Final = -1


class DueTimes:
    """Says which records are due; of the first one that isn't, it remembers when it will be.

    A record of a retry topic is due a delay after its timestamp, which the broker sets. One of an input topic is due a
    delay after its timestamp, or after it was polled first if that was earlier: a producer may set any timestamp, and
    no record waits for longer than the delay.

    Args:
        delay_s: the delay, s.
        retries: whether it is a retry topic.

    Attributes:
        next_ms: when the first record that wasn't due is due, ms since the epoch.
    """

    __slots__ = ("_delay_ms", "_next_offset", "delay_s", "next_ms", "retries")

    def __init__(self, delay_s: float, retries: bool) -> None:
        self.delay_s = delay_s
        self.retries = retries
        self._delay_ms = round(delay_s * 1000)
        self._next_offset = _NONE
        self.next_ms = 0

    def due(self, offsets: Sequence[int], timestamps_ms: Sequence[int], now_ms: int) -> int:
        """Return how many of the records just polled are due, from the first on.

        Args:
            offsets: of the records.
            timestamps_ms: of the records; -1 is none.
            now_ms: the present moment.
        """
        for index, (offset, timestamp_ms) in enumerate(zip(offsets, timestamps_ms, strict=True)):
            if offset == self._next_offset:
                due_ms = self.next_ms
            else:
                due_ms = self._since_ms(timestamp_ms, now_ms) + self._delay_ms
            if due_ms > now_ms:
                self._next_offset, self.next_ms = offset, due_ms
                return index
        return len(offsets)

    def _since_ms(self, timestamp_ms: int, now_ms: int) -> int:
        return timestamp_ms if self.retries or 0 <= timestamp_ms < now_ms else now_ms
