"""What a server can say about its own latencies in bounded memory."""

from __future__ import annotations

from collections import Counter
from math import ceil, log

GROWTH = 1.01  # each bucket is 1 % wider than the one before: percentiles are right to 1 %
FLOOR_S = 1e-6


class LatencySummary:
    """Count, exact mean and slowest, and percentiles to 1 %."""

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self.slowest_s = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one latency, s."""
        self.count += 1
        self.total_s += seconds
        self.slowest_s = max(self.slowest_s, seconds)
        self._buckets[ceil(log(max(seconds, FLOOR_S) / FLOOR_S, GROWTH))] += 1

    @property
    def mean_s(self) -> float:
        """Return the mean, s; 0 before the first."""
        return self.total_s / self.count if self.count else 0.0

    def percentile_s(self, percent: float) -> float:
        """Return the latency, s, that ``percent`` of all did not exceed; 0 before the first."""
        wanted = ceil(self.count * percent / 100)
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return float(min(FLOOR_S * GROWTH**bucket, self.slowest_s))
        return 0.0
