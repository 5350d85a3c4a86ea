"""The processor's numbers as plain integers: the hot loop adds, a scrape reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from processor.protocol.events import CommitAnswered
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
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

    def rebalanced(self, kind: str) -> None:
        """Count a rebalance: assigned, revoked or lost."""
        self.rebalances[kind] += 1

    def commit_answered(self, answer: CommitAnswered, now_ms: int) -> None:
        """Count the answer of a commit, partition by partition, at ``now_ms`` of the wall clock."""
        self.commits.update(ok=len(answer.confirmed), failed=len(answer.failed))
        if answer.confirmed:
            self.last_commit_ms = now_ms

    def count_polled(self, topic: str, records: int, passed_over: int) -> None:
        """Count polled records of a topic, and those of them that another group is to handle."""
        self.consumed[topic] += records
        self.passed_over += passed_over

    def count_registered(self, records: int, renewed: int) -> None:
        """Count acknowledged wait records, and how many of these are second ones."""
        self.registered += records - renewed
        self.renewed += renewed

    def count_settled(self, outcome: Outcome, records: int = 1) -> None:
        """Count records that are settled."""
        self.settled[outcome.value] += records

    def dead_lettered(self, reason: Reason) -> None:
        """Count a dead letter that the broker has acknowledged."""
        self.dead_letters[reason.value] += 1

    def retried(self, delay: str) -> None:
        """Count a retry record that the broker has acknowledged."""
        self.retries[delay] += 1

    def skewed(self, skew_ms: int) -> None:
        """Note by how much the broker's clock is certainly off, ms."""
        self.clock_skew_ms = skew_ms

    def know_labels(self, topics: Iterable[str], delays: Iterable[str]) -> None:
        """Show consumed topics and delays of retry topics before the first record."""
        self.consumed.update(dict.fromkeys(topics, 0))
        self.retries.update(dict.fromkeys(delays, 0))
