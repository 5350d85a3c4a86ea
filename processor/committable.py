"""Committable offsets: batches of registrations in the order of polling, of which the acknowledged heads are popped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, Message

from processor.assigned_partition import AssignedPartition
from processor.entry import Entry


class RegistrationBatch:
    """The registrations of one poll; ``pending`` counts those that the broker hasn't acknowledged.

    Args:
        entries: in the order of polling.
        ends: per partition, the offset after the batch's last record of it.
        sent_ms: wall clock before the first is sent.
        refused: called when the broker refuses a wait record.
        completed: called with the batch and the delivery report that completes it.
    """

    __slots__ = ("_completed", "_refused", "acknowledged_ms", "ends", "entries", "pending", "published", "sent_ms")

    def __init__(
        self,
        entries: list[Entry],
        ends: dict[AssignedPartition, int],
        sent_ms: int,
        refused: Callable[[Entry, KafkaError], None],
        completed: Callable[[RegistrationBatch, Message], None],
    ) -> None:
        self.entries = entries
        self.ends = ends
        self.pending = len(entries)
        self.published = 0
        self.sent_ms = sent_ms
        # For telemetry; when its last wait record was acknowledged, by this host's clock.
        self.acknowledged_ms = sent_ms
        self._refused = refused
        self._completed = completed
        for entry in entries:
            entry.batch = self

    def refused(self, entry: Entry, error: KafkaError) -> None:
        """Pass a refusal on; the entry stays pending, so nothing behind it can be committed."""
        self._refused(entry, error)

    def completed(self, message: Message) -> None:
        """Pass the last delivery report on."""
        self._completed(self, message)

    def acknowledge(self) -> None:
        """Count one record as safe without its wait record: its dead letter is acknowledged."""
        self.pending -= 1


class CommittableOffsets:
    """A FIFO of batches whose acknowledged heads are popped, which costs O(1) per record.

    A batch that is never acknowledged blocks every batch behind it: a committed offset can't pass it (P2).
    """

    def __init__(self) -> None:
        self._batches: deque[RegistrationBatch] = deque()

    def __len__(self) -> int:
        """Return how many batches aren't popped."""
        return len(self._batches)

    def append(self, batch: RegistrationBatch) -> None:
        """Add the batch polled last."""
        self._batches.append(batch)

    def advance(self) -> list[Entry]:
        """Pop the acknowledged heads, advance their committable offsets, and return their entries in order."""
        batches = self._batches
        entries: list[Entry] = []
        while batches and batches[0].pending == 0:
            batch = batches.popleft()
            for owner, end in batch.ends.items():
                owner.committable = end
            entries += batch.entries
            # A slow record of the batch must not keep the others' values alive through it.
            batch.entries = []
        return entries

    def pending(self) -> int:
        """Return how many wait records aren't acknowledged."""
        return sum(batch.pending for batch in list(self._batches))

    def waiting_s(self, now_s: float) -> float:
        """Return for how long the first batch has waited for its acknowledgments, 0 if there is none; any thread.

        Args:
            now_s: of the monotonic clock.
        """
        for batch in list(self._batches):
            # The event loop empties it when it pops it, perhaps now.
            for entry in batch.entries[:1]:
                return max(0.0, now_s - entry.lifetime.registered_s)
        return 0.0

    def entries_of(self, owner: AssignedPartition) -> list[Entry]:
        """Return the partition's entries in batches that aren't popped."""
        return [entry for batch in self._batches for entry in batch.entries if entry.owner is owner]


def commit_target(requested: int, committable: int, unstarted: Iterable[int]) -> int:
    """Return the offset to commit when a partition is released.

    Records that haven't started go to the next owner, so the commit stops at the first of them. Records below an
    earlier commit (``requested``) stay committed, and this process handles them.

    Args:
        requested: highest offset of a requested commit, -1 if there was none.
        committable: the committable offset, -1 if there is none.
        unstarted: offsets of registered records whose handler hasn't been called.

    Returns:
        The offset to commit; unstarted records at or above it belong to the next owner.
    """
    first_unstarted = min((offset for offset in unstarted if offset >= requested), default=committable)
    return max(requested, min(committable, first_unstarted))
