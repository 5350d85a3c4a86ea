"""The processor's numbers as plain integers: the hot loop adds, a scrape reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from wait_registry.telemetry.metrics import PROCESSOR_HANDLER_SECONDS, PROCESSOR_QUEUE_SECONDS, RESULTS


class Latencies:
    """A histogram of seconds: observations per bucket and their sum.

    Args:
        buckets: upper bounds, inclusive; what is above the last one has a bucket too.
    """

    __slots__ = ("_buckets", "counts", "total_s")

    def __init__(self, buckets: tuple[float, ...]) -> None:
        self._buckets = buckets
        self.counts = [0] * (len(buckets) + 1)
        self.total_s = 0.0

    def observe(self, elapsed_s: float) -> None:
        """Count one duration, s."""
        self.counts[bisect_left(self._buckets, elapsed_s)] += 1
        self.total_s += elapsed_s


class Stats:
    """Counters since the start; written by the event loop's thread alone."""

    def __init__(self) -> None:
        self.consumed: Counter[str] = Counter()
        self.registered = 0
        self.renewed = 0
        self.settled: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.retries: Counter[str] = Counter()
        self.passed_over = 0
        self.attempts: Counter[str] = Counter()
        self.commits: Counter[str] = Counter()
        self.rebalances: Counter[str] = Counter()
        self.seconds = {outcome: Latencies(PROCESSOR_HANDLER_SECONDS.buckets) for outcome in RESULTS}
        self.queue = Latencies(PROCESSOR_QUEUE_SECONDS.buckets)
        self.last_commit_ms = 0
        self.clock_skew_ms = 0

    def committed(self, now_ms: int) -> None:
        """Count a commit that the broker has confirmed, at ``now_ms`` of the wall clock."""
        self.commits["ok"] += 1
        self.last_commit_ms = now_ms
