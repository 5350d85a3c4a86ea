"""Decides when a poll waits, so that one iteration takes several records."""

from __future__ import annotations

import math
from typing import Final

# With more records than these, an iteration is hardly cheaper per record.
ENOUGH: Final = 32
# The weight of the last poll in the mean gap between two records.
WEIGHT: Final = 0.25
# A pause counts as this multiple of the span, so that a few close records begin the gathering after any pause.
LONGEST: Final = 4


class Gathering:
    """Decides how long to rest before a poll. An iteration costs as much as dozens of records.

    A record that comes alone is taken at once. If records come faster than one per span, a poll rests until the span
    after the last records is over. It doesn't if these were many, or if they were there before the client was asked:
    then the client, which gathers too (``fetch.queue.backoff.ms``), is ahead by a part of the span, and fetches soon.

    Args:
        span_s: ``processor.gather_ms`` in seconds; 0 never rests.
    """

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._between_s = math.inf
        self._came_s = -math.inf
        self._enough = True

    @property
    def step_s(self) -> float:
        """The span while records trickle in, so that what can wait may wait for them; else 0."""
        return self._span_s if self._between_s < self._span_s else 0.0

    def rest_s(self, now_s: float) -> float:
        """Return how long to rest before the next poll, s, at ``now_s`` of the clock that never steps."""
        if self._enough or not self.step_s:
            return 0.0
        return max(0.0, self._came_s + self._span_s - now_s)

    def came(self, records: int, asked: int, waited: bool, now_s: float) -> None:
        """Note what a poll brought.

        Args:
            records: how many records; nothing changes without any.
            asked: how many it could have brought.
            waited: whether the first one was waited for.
            now_s: when it ended, on the clock that never steps.
        """
        if not records:
            return
        longest_s = LONGEST * self._span_s
        between_s = min(longest_s, (now_s - self._came_s) / records)
        self._between_s = (1 - WEIGHT) * min(longest_s, self._between_s) + WEIGHT * between_s
        self._came_s = now_s
        self._enough = not waited or records >= min(asked, ENOUGH)
