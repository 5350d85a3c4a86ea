"""Which commits are under way, what they record, and when the next one is due."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from processor.protocol.effects import Commit, Release
from processor.protocol.events import CommitAnswered
from processor.protocol.partition import Partition, Recorded
from wait_registry.records.topics import TopicPartition

# A commit whose answer is lost must not stop all further commits.
ANSWER_LIMIT_S: Final = 30.0
# Longer than the client waits for the broker; the answer of an older commit doesn't come any more.
LATE_LIMIT_S: Final = 300.0


class Sent(NamedTuple):
    """A commit, when it was sent, and what of it isn't answered."""

    commit: Commit | Release
    at_s: float
    targets: dict[TopicPartition, tuple[Partition, int]]


class Commits:
    """The commits of an engine: one is in flight at most, apart from the last ones of partitions that are given up.

    Args:
        interval_s: pause between commits, s.
        recorded: what a commit says of this process, unless it stops within a warm-up.
    """

    def __init__(self, interval_s: float, recorded: Recorded) -> None:
        self._interval_s = interval_s
        self._recorded = recorded
        # A late answer isn't one to a later commit of the same offset: between the two, the partition may have been
        # another process's.
        self._sent: list[Sent] = []
        self._in_flight: Sent | None = None
        # Partitions whose records wait for a commit: it announces this process's mode and bound, or shows that they are
        # still this process's.
        self._unproved: set[Partition] = set()
        self.sent_s = self._due_s = self._not_before_s = -math.inf

    def hasten(self) -> None:
        """Let the next commit be due now."""
        self._due_s = -math.inf

    def announce(self, partition: Partition) -> None:
        """Commit now, the same offset again if need be: its metadata says what this process may do beyond it."""
        self._unproved.add(partition)

    def prove(self, partition: Partition) -> None:
        """Commit now in the same way: the confirmation shows whose the partition is."""
        self.announce(partition)

    def forget(self, partition: Partition) -> None:
        """Prove a partition no more."""
        self._unproved.discard(partition)

    def is_due(self, now_s: float) -> bool:
        """Return whether a commit is due."""
        return now_s >= self._due_s or bool(self._unproved)

    def may_cover_more(self, partition: Partition) -> bool:
        """Return whether the answer of a commit of this partition is awaited."""
        return any(
            owner is partition
            for sent in self._sent
            if sent is self._in_flight or isinstance(sent.commit, Release)
            for owner, _ in sent.targets.values()
        )

    def request(self, partitions: Iterable[Partition], now_s: float) -> tuple[Commit | None, list[Partition]]:
        """Return the next commit, if one may be sent now, and the partitions whose last commit is no longer awaited."""
        awaited = [] if self._in_flight is None else [partition for partition, _ in self._in_flight.targets.values()]
        if (awaited and now_s - self.sent_s < ANSWER_LIMIT_S) or now_s < self._not_before_s:
            return None, []
        self._due_s = now_s + self._interval_s
        targets = {
            partition: partition.request()
            for partition in partitions
            if partition.committable > partition.confirmed or partition in self._unproved
        }
        self._in_flight = None
        unanswered = [partition for partition in awaited if partition not in targets]
        if not targets:
            return None, unanswered
        self.sent_s = now_s
        commit = Commit(*self._content(targets))
        self._in_flight = self._send(commit, targets, now_s)
        return commit, unanswered

    def release(self, targets: Mapping[Partition, int], now_s: float) -> Release:
        """Return the last commit of partitions that are given up.

        It commits the same offset again where records beyond it may be registered: its metadata says how many.
        """
        last = {p: target for p, target in targets.items() if target > p.confirmed or p.uncommitted}
        release = Release(*self._content(last))
        self._send(release, last, now_s)
        return release

    def answered(self, event: CommitAnswered, now_s: float) -> Iterator[tuple[Partition, int | None, float]]:
        """Yield each partition in the answer, with its offset, None if the commit failed, and when it was sent, s."""
        for place, offset in (*event.confirmed.items(), *((place, None) for place in event.failed)):
            sent = self._sent_to(event, place, offset)
            if sent is None:
                continue
            partition, _ = sent.targets.pop(place)
            if offset is None:
                self._not_before_s = now_s + self._interval_s
            elif sent is self._in_flight:
                self._unproved.discard(partition)
            yield partition, offset, sent.at_s
        self._sent = [sent for sent in self._sent if sent.targets and now_s - sent.at_s < LATE_LIMIT_S]
        if self._in_flight is not None and not self._in_flight.targets:
            self._in_flight = None

    def _sent_to(self, event: CommitAnswered, place: TopicPartition, offset: int | None) -> Sent | None:
        """Return the first commit that an answer may be one to."""
        for sent in self._sent:
            is_meant = isinstance(sent.commit, Commit) if event.to is None else sent.commit is event.to
            if is_meant and place in sent.targets and offset in (sent.targets[place][1], None):
                return sent
        return None

    def _send(self, commit: Commit | Release, targets: Mapping[Partition, int], now_s: float) -> Sent:
        places = {partition.place: (partition, target) for partition, target in targets.items()}
        self._sent.append(sent := Sent(commit, now_s, places))
        return sent

    def _content(
        self, targets: Mapping[Partition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, Recorded]]:
        recorded = {p.place: self._recorded if p.ends_warm_up(target) else p.recorded for p, target in targets.items()}
        return {partition.place: target for partition, target in targets.items()}, recorded
