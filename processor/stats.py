"""The processor's numbers as plain integers: the hot loop adds, a scrape reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from wait_registry.telemetry.metrics import PROCESSOR_HANDLER_SECONDS

BUCKETS = PROCESSOR_HANDLER_SECONDS.buckets


class Latencies:
    """A histogram of seconds: observations per bucket (upper bounds inclusive) and their sum."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total_s = 0.0

    def observe(self, elapsed_s: float) -> None:
        """Count one duration, s."""
        self.counts[bisect_left(BUCKETS, elapsed_s)] += 1
        self.total_s += elapsed_s


class Stats:
    """Counters since the start; written by the event loop's thread alone."""

    def __init__(self) -> None:
        self.consumed: Counter[str] = Counter()
        self.registered = 0
        self.renewed = 0
        self.settled: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.tries: Counter[str] = Counter()
        self.commits: Counter[str] = Counter()
        self.rebalances: Counter[str] = Counter()
        self.seconds: dict[str, Latencies] = {}
        self.clock_skew_ms = 0

    def observe(self, outcome: str, elapsed_s: float) -> None:
        """Count the time from a record's first start to its outcome, s."""
        latencies = self.seconds.get(outcome)
        if latencies is None:
            latencies = self.seconds[outcome] = Latencies()
        latencies.observe(elapsed_s)
