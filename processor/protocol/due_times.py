"""When the records of a delayed partition may be handled (D1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

# By no more than this part of the delay does a record wait longer, so that few ends of the log are remembered.
_PARTS: Final = 500


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

    __slots__ = ("_delay_ms", "_ends", "delay_s", "next_ms", "retries", "seen_end")

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
        """Return how many of the records just polled are due, from the first on.

        Args:
            offsets: of the records.
            timestamps_ms: of the records; -1 is none.
            now_ms: the present moment.
        """
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
