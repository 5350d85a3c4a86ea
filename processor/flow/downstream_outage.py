"""How fast calls may start while the downstream is away; else the input would empty into the topics for failures."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
_SLICE_S: Final = 1.0
# Fewer say nothing about the downstream.
LEAST_CALLS: Final = 10
SLOWEST_S: Final = 1.0
_FASTEST_S: Final = 0.01
# A success takes back what four failures have added, so the pace grows while more than a fifth of the calls succeed.
_SLOWER: Final = 2**0.25
_FASTER: Final = 2.0


class Pace:
    """Spaces the starts of calls, up to one per second, while more than half of the last minute's calls have failed."""

    def __init__(self) -> None:
        # Of each second with calls: when it began, how many calls ended, and how many of them failed.
        self._slices: deque[list[float]] = deque()
        self.pause_s = 0.0
        self.next_s = -math.inf

    def ended(self, calls: int, failed: int, now_s: float) -> None:
        """Note ended calls, and how many of them failed and may succeed later."""
        slices = self._slices
        if not slices or now_s - slices[-1][0] >= _SLICE_S:
            slices.append([now_s, 0, 0])
            while slices[0][0] < now_s - WINDOW_S:
                slices.popleft()
        slices[-1][1] += calls
        slices[-1][2] += failed
        if failed or self.pause_s:
            self._adjust(calls - failed, failed)

    def _adjust(self, succeeded: int, failed: int) -> None:
        pause_s = self.pause_s / _FASTER ** min(succeeded, 64)
        if failed and self._most_fail():
            pause_s = max(pause_s, _FASTEST_S) * _SLOWER ** min(failed, 64)
        self.pause_s = 0.0 if pause_s < _FASTEST_S else min(pause_s, SLOWEST_S)

    def _most_fail(self) -> bool:
        calls = sum(calls for _, calls, _ in self._slices)
        failed = sum(failed for _, _, failed in self._slices)
        return calls >= LEAST_CALLS and 2 * failed > calls

    def allowed(self, now_s: float) -> int:
        """Return how many calls may start now, while there are pauses."""
        return 1 if now_s >= self.next_s else 0

    def started(self, now_s: float) -> None:
        """Note that calls start."""
        self.next_s = now_s + self.pause_s
