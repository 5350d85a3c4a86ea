"""The rate of a job: how many records are sent together, and when the next ones are due."""

from __future__ import annotations

from typing import Final

# A chunk that took longer than it may is followed by the next one at once, so a chunk has the records of a part of a
# second, or a few: no second has more than its own and those of two chunks.
_PER_SECOND: Final = 4
_FEW: Final = 25


def chunk_size(rate: float) -> int:
    """Return how many records are sent together at most at a rate, records per second."""
    return max(1, min(int(rate), max(_FEW, int(rate / _PER_SECOND))))


class RateLimit:
    """Plans when the next records are due, so that the time of the sending doesn't lower the rate.

    Args:
        now_s: the present moment, on a clock that never steps.
    """

    def __init__(self, now_s: float) -> None:
        self._due_s = now_s

    def pause_s(self, records: int, rate: float, now_s: float) -> float:
        """Return how long to wait after records have been sent, s. Time that was lost is never made up for.

        Args:
            records: how many.
            rate: records per second.
            now_s: the present moment.
        """
        self._due_s = max(self._due_s + records / rate, now_s)
        return self._due_s - now_s
