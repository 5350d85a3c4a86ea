"""The rate of a job: how many records are sent together, and when the next ones are due."""

from __future__ import annotations

from typing import Final

# After a slow chunk the next one follows at once. So a chunk has the records of a part of a second, or a few, and no
# second has more records than the rate and two chunks.
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
        self._has_skipped = False

    def pause_s(self, records: int, rate: float, now_s: float, is_last: bool = False) -> float:
        """Return how long to wait after records have been sent, s. Time that was lost is never made up for.

        Args:
            records: how many.
            rate: records per second.
            now_s: the present moment.
            is_last: whether hardly any records follow: one pause is skipped then, and the next one is longer.
        """
        self._due_s = max(self._due_s + records / rate, now_s)
        if is_last and not self._has_skipped:
            self._has_skipped = True
            return 0.0
        return self._due_s - now_s
