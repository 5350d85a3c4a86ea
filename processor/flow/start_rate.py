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
        # Of each second with calls: when it began, calls, failed ones. The last one isn't among them.
        self._slices: deque[tuple[float, int, int]] = deque()
        self._since_s = -math.inf
        self._slice_calls = 0
        self._slice_failed = 0
        self._calls = 0
        self._failed = 0
        self.pause_s = 0.0
        self.next_s = -math.inf

    def ended(self, calls: int, failed: int, now_s: float) -> None:
        """Note ended calls, and how many of them failed and may succeed later."""
        if now_s - self._since_s >= _SLICE_S:
            self._begin_slice(now_s)
        self._slice_calls += calls
        self._slice_failed += failed
        self._calls += calls
        self._failed += failed
        if failed or self.pause_s:
            self._adjust(calls - failed, failed)

    def _begin_slice(self, now_s: float) -> None:
        self._slices.append((self._since_s, self._slice_calls, self._slice_failed))
        self._since_s, self._slice_calls, self._slice_failed = now_s, 0, 0
        while self._slices and self._slices[0][0] < now_s - WINDOW_S:
            _, calls, failed = self._slices.popleft()
            self._calls -= calls
            self._failed -= failed

    def _adjust(self, succeeded: int, failed: int) -> None:
        pause_s = self.pause_s / _FASTER ** min(succeeded, 64)
        if failed and self._calls >= LEAST_CALLS and 2 * self._failed > self._calls:
            pause_s = max(pause_s, _FASTEST_S) * _SLOWER ** min(failed, 64)
        self.pause_s = 0.0 if pause_s < _FASTEST_S else min(pause_s, SLOWEST_S)

    def allowed(self, now_s: float) -> int:
        """Return how many calls may start now, while there are pauses."""
        return 1 if now_s >= self.next_s else 0

    def started(self, now_s: float) -> None:
        """Note that calls start."""
        self.next_s = now_s + self.pause_s
