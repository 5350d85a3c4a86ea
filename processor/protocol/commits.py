"""Which commits are under way, what they record, and when the next one is due."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from processor.protocol.events import Commit, CommitAnswered, Release
from processor.protocol.partition import Partition, Recorded
from wait_registry.records.topics import TopicPartition

# A commit whose answer is lost must not stop all further commits.
ANSWER_LIMIT_S: Final = 30.0


class Commits:
    """The commits of an engine: one is in flight at most, apart from the last ones of partitions that are given up.

    Args:
        interval_s: pause between commits, s.
        recorded: what a commit says of this process, unless it stops within a warm-up.

    Attributes:
        sent_s: when the last one was sent, on the clock that never steps.
    """

    def __init__(self, interval_s: float, recorded: Recorded) -> None:
        self._interval_s = interval_s
        self._recorded = recorded
        self._in_flight: dict[Partition, int] = {}
        self._last: dict[Partition, int] = {}
        # Partitions whose records wait for a commit: it announces this process's mode and bound, or shows that they are
        # still this process's.
        self._unproved: set[Partition] = set()
        self.sent_s = self._due_s = self._not_before_s = -math.inf
        self._soon = False

    def hasten(self) -> None:
        """Let the next commit be due now."""
        self._soon = True

    def announce(self, partition: Partition) -> None:
        """Commit now, the same offset again if need be: its metadata says what this process may do beyond it."""
        self._unproved.add(partition)

    def prove(self, partition: Partition) -> None:
        """Commit now in the same way: the confirmation shows whose the partition is."""
        self.announce(partition)

    def is_due(self, now_s: float) -> bool:
        """Return whether a commit is due."""
        return now_s >= self._due_s or self._soon or bool(self._unproved)

    def may_cover_more(self, partition: Partition) -> bool:
        """Return whether the answer of a commit of this partition is awaited."""
        return partition in self._in_flight or partition in self._last

    def request(self, partitions: Iterable[Partition], now_s: float) -> tuple[Commit | None, list[Partition]]:
        """Return the next commit, None if it must wait or there is nothing to commit.

        Returns:
            The commit, and the partitions whose last commit is no longer awaited.
        """
        if (self._in_flight and now_s - self.sent_s < ANSWER_LIMIT_S) or now_s < self._not_before_s:
            return None, []
        self._soon = False
        self._due_s = now_s + self._interval_s
        targets = {
            partition: partition.request()
            for partition in partitions
            if partition.committable > partition.confirmed or partition in self._unproved
        }
        unanswered = [partition for partition in self._in_flight if partition not in targets]
        self._in_flight = targets
        if not targets:
            return None, unanswered
        self.sent_s = now_s
        return Commit(*self._content(targets)), unanswered

    def release(self, targets: Mapping[Partition, int]) -> Release:
        """Return the last commit of partitions that are given up.

        It commits the same offset again where records beyond it may be registered: its metadata says how many.
        """
        last = {p: target for p, target in targets.items() if target > p.confirmed or p.uncommitted}
        self._last.update(last)
        return Release(*self._content(last))

    def forget(self, partition: Partition) -> None:
        """Prove a partition no more."""
        self._unproved.discard(partition)

    def answered(self, event: CommitAnswered, now_s: float) -> Iterator[tuple[Partition, int | None]]:
        """Yield the partitions in the answer, each with its offset, or None if its commit failed."""
        for requests in (self._in_flight, self._last):
            for partition, target in list(requests.items()):
                # An answer with another offset belongs to an earlier commit.
                if event.confirmed.get(partition.place) == target:
                    del requests[partition]
                    self._unproved.discard(partition)
                    yield partition, target
                elif partition.place in event.failed:
                    del requests[partition]
                    self._not_before_s = now_s + self._interval_s
                    yield partition, None

    def _content(
        self, targets: Mapping[Partition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, Recorded]]:
        recorded = {p.place: self._recorded if p.ends_warm_up(target) else p.recorded for p, target in targets.items()}
        return {partition.place: target for partition, target in targets.items()}, recorded
