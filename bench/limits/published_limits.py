"""Published concurrency limits, for comparison: Vegas and Gradient2 of Netflix's concurrency-limits 0.5.

Both behind its window: the mean latency of a second with ten calls or more. uForwarder runs this Vegas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from processor.flow.concurrency import EndedCall

WINDOW_S: Final = 1.0
LEAST_CALLS: Final = 10


class Windowed:
    """Passes the calls of a second on.

    Args:
        least: lower bound of the limit.
        most: upper bound of the limit.
    """

    learns: Final = True

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.limit = 20.0
        self._calls: list[EndedCall] = []
        self._ends_s = 0.0

    @property
    def current(self) -> int:
        return max(self.least, int(self.limit))

    def learn(self, ended: Sequence[EndedCall], running: int, now_s: float) -> None:
        calls = self._calls
        calls += ended
        if now_s > self._ends_s:
            if len(calls) >= LEAST_CALLS:
                self.update(
                    sum(call.seconds for call in calls) / len(calls),
                    max(call.running for call in calls),
                    any(call.failed for call in calls),
                )
            self._calls = []
            self._ends_s = now_s + WINDOW_S

    def update(self, seconds: float, running: int, dropped: bool) -> None:
        raise NotImplementedError


class Vegas(Windowed):
    """Keeps the estimated queue between three and six times the logarithm of the limit."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least, most)
        self._idle_s = 0.0
        self._updates = 0

    def update(self, seconds: float, running: int, dropped: bool) -> None:
        self._updates += 1
        if self._updates >= 0.75 * 30 * self.limit:  # the published factor is random, 0.5 to 1
            self._updates, self._idle_s = 0, seconds
        elif self._idle_s == 0 or seconds < self._idle_s:
            self._idle_s = seconds
        else:
            step = max(1, int(math.log10(self.limit)))
            self.limit = max(1.0, min(self.most, self.limit + self._change(seconds, running, dropped, step)))

    def _change(self, seconds: float, running: int, dropped: bool, step: int) -> int:
        queue = math.ceil(self.limit * (1 - self._idle_s / seconds))
        if dropped:
            return -step
        if running * 2 < self.limit:
            return 0
        if queue <= step:
            return 6 * step
        if queue < 3 * step:
            return step
        return -step if queue > 6 * step else 0


class Gradient2(Windowed):
    """Follows the ratio of the long-term mean latency to that of the last window."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least, most)
        self._long_s = 0.0
        self._updates = 0

    def update(self, seconds: float, running: int, dropped: bool) -> None:
        self._updates += 1
        weight = 1 / self._updates if self._updates <= 10 else 2 / 601
        self._long_s += weight * (seconds - self._long_s)
        if self._long_s > 2 * seconds:
            self._long_s *= 0.95
        if running < self.limit / 2:
            return
        gradient = max(0.5, min(1.0, 1.5 * self._long_s / seconds))
        target = self.limit * gradient + 4
        self.limit = max(self.least, min(self.most, 0.8 * self.limit + 0.2 * target))
