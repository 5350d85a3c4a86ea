"""How much at once: how many records are polled, which partitions are fetched, and which records start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from processor.flow.fetching import Fetching
from processor.flow.prefetch import Prefetch
from processor.flow.slots import Slots
from processor.protocol.effects import Pause, Resume
from processor.protocol.open_records import OpenRecords
from processor.protocol.partition import Partition
from processor.protocol.record import Entry
from wait_registry.records.topics import TopicPartition

# A quarter of what may be open is polled at a time.
REFILL_SHARE: Final = 4


class Flow:
    """Keeps the worker slots busy with as few open records as possible.

    ``calls_wait`` is whether calls wait for acknowledgments of the broker: more records are open then.

    Args:
        records: all that are open, and the partitions; the engine changes them.
        slots: the worker slots.
        prefetch: how many records may be open.
        uncommitted_max: records of a partition that were polled and that no confirmed commit covers.
    """

    def __init__(self, records: OpenRecords, slots: Slots, prefetch: Prefetch, uncommitted_max: int) -> None:
        self._records = records
        self.slots = slots
        self._prefetch = prefetch
        self._fetching = Fetching(uncommitted_max, records.partitions)

    @property
    def paused(self) -> bool:
        """Whether all partitions are paused, because there is no room."""
        return self._fetching.paused

    @property
    def next_due_s(self) -> float:
        """When a record may start, or a partition is fetched again, because time has passed."""
        return min(self._fetching.next_due_s, self.slots.next_start_s)

    def prefetch_limit(self, calls_wait: bool) -> int:
        """Return how many records may be open."""
        return self._prefetch.bound(calls_wait)

    def room(self, calls_wait: bool) -> int:
        """Return how many records may be polled now."""
        return 0 if self.paused else min(self._capacity(calls_wait), self._fetching.room())

    def is_worth_a_poll(self, room: int, calls_wait: bool) -> bool:
        """Return whether to poll when there is room for this number of records.

        A poll costs as much as dozens of records. So a prefetch that keeps all slots busy is filled up by a quarter of
        its bound at a time.
        """
        waiting = len(self._records) - self.slots.running - self.slots.behind
        return room > 0 and (waiting < self.slots.limit or room * REFILL_SHARE >= self._prefetch.bound(calls_wait))

    def _capacity(self, calls_wait: bool) -> int:
        return self._prefetch.capacity(*self._load(), calls_wait, self.slots.behind)

    def _load(self) -> tuple[int, int]:
        """Return how many records are open, and their bytes, without those that hold their partition."""
        records = self._records
        return len(records) - len(records.refused), records.size - records.refused.size

    def polled(self, partition: Partition, sizes: Sequence[int], calls_wait: bool) -> list[Pause]:
        """Note the sizes of records just polled, bytes; return what to pause."""
        self._prefetch.observe_size(len(sizes), sum(sizes))
        pauses = self._fetching.polled(partition, len(sizes))
        if partition.retries and not self._fetching.retries_paused and self._retries_are_many(2, calls_wait):
            pauses += self._fetching.pause_retries()
        if self.slots.behind_of(partition.place) > self._share():
            pauses += self.crowds(partition.place)
        return pauses

    def polling_without_room(self, answer_is_near: bool) -> list[Pause]:
        """Note that the client is polled without room; return what to pause.

        If ``answer_is_near``, the answer of a commit makes room soon, and comes with polls only.
        """
        if self.paused:
            return []
        if not self._prefetch.below_caps(*self._load()):
            return [self._fetching.pause_all()]
        if not answer_is_near:
            self._fetching.polling_without_room()
        return []

    def is_early(self, place: TopicPartition, due_s: float, now_s: float) -> Pause:
        """Pause a partition until its next record is due."""
        return self._fetching.is_early(place, due_s, now_s)

    def crowds(self, place: TopicPartition) -> list[Pause]:
        """Pause a partition of which too many records wait for earlier ones, or that a refused dead letter holds."""
        return self._fetching.crowds(place)

    def may_fetch(self, partition: Partition) -> bool:
        """Return whether there is no reason not to fetch a partition."""
        return self._fetching.may_fetch(partition)

    def confirmed(self, partition: Partition, is_first: bool) -> list[Resume]:
        """Note a confirmed commit, ``is_first`` says whether of a new assignment; return what to fetch again."""
        return self._fetching.confirmed(partition, is_first)

    def observe(self, now_s: float) -> None:
        """Measure how many records are settled."""
        self._prefetch.observe(now_s, self._records.settled)

    def resume(self, now_s: float, calls_wait: bool) -> list[Resume]:
        """Return what to fetch again, when a poll has ended."""
        fetching, resumed = self._fetching, list[Resume]()
        # A quarter of what could be polled if no record were open, by the tighter of the two limits.
        if self.paused and self._capacity(calls_wait) * REFILL_SHARE >= self._prefetch.capacity(0, 0, calls_wait):
            resumed += fetching.has_room_again()
        resumed += fetching.poll_has_ended(now_s)
        if fetching.retries_paused and not self._retries_are_many(4, calls_wait):
            resumed += fetching.resume_retries()
        for place in list(fetching.crowded):
            if not self._records.refused.at([place]) and 2 * self.slots.behind_of(place) <= self._share():
                resumed += fetching.has_thinned(place)
        return resumed

    def _share(self) -> int:
        return self._prefetch.share(len(self._records.partitions))

    def _retries_are_many(self, share: int, calls_wait: bool) -> bool:
        """Return whether records of retry topics are this part of the prefetch, or more, while others are open."""
        retries = self._records.retries
        return retries < len(self._records) and retries * share >= self._prefetch.bound(calls_wait)

    def give_up(self, partitions: Collection[Partition], left: Iterable[Entry]) -> None:
        """Forget partitions and their dropped records; ``left`` are those whose calls have ended."""
        for partition in partitions:
            self._fetching.forget(partition.place)
        self.slots.give_up(left)
