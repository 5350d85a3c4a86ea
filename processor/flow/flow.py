"""How much at once: how many records are polled, which partitions are fetched, and which records start."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from processor.flow.prefetch import Prefetch
from processor.flow.slots import Slots
from processor.protocol.effects import Pause, Resume
from processor.protocol.open_records import OpenRecords
from processor.protocol.partition import UNKNOWN, Partition
from processor.protocol.record import Entry
from processor.protocol.registering import Rules
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_record import RegistrationMode

# A quarter of what may be open is polled at a time.
REFILL_SHARE: Final = 4
# Records that are taken beyond the limit of the prefetch, but not beyond its caps, because a member of the group must
# poll, before all partitions are paused.
PAUSE_AFTER: Final = 4
# From the pause of a partition that waits for its time to its end, at least: each costs a fetch.
LEAST_WAIT_S: Final = 0.5


class Flow:
    """Keeps the worker slots busy with as few open records as possible.

    It fetches a partition if it is announced, has room, and its first record is due, and retries leave room for others.

    Args:
        rules: of the protocol.
        records: all that are open, and the partitions; the engine changes them.
        slots: the worker slots.
        prefetch: how many records may be open.

    Attributes:
        draining: whether the process stops, and polls nothing more.
        paused: whether all partitions are paused, because there is no room.
    """

    def __init__(self, rules: Rules, records: OpenRecords, slots: Slots, prefetch: Prefetch) -> None:
        self._rules = rules
        self._records = records
        self.slots = slots
        self._prefetch = prefetch
        self.draining = self.paused = False
        self._retries_paused = False
        # Partitions with too many uncommitted records; those whose first record isn't due, and when it will be; those
        # of which too many records wait for earlier ones.
        self._full: set[TopicPartition] = set()
        self._early: dict[TopicPartition, float] = {}
        self._crowded: set[TopicPartition] = set()
        # The partitions that are paused now, for any reason.
        self._stopped: set[TopicPartition] = set()
        self._has_room = True
        self._taken_without_room = 0

    # ---- what the loop and the telemetry ask

    @property
    def next_due_s(self) -> float:
        """When a record may start, or a partition is fetched again, because time has passed."""
        return min(self.slots.next_start_s, *self._early.values(), math.inf)

    @property
    def prefetch_limit(self) -> int:
        """How many records may be open."""
        return self._prefetch.bound(self._calls_wait())

    def room(self) -> int:
        """Return how many records may be polled now."""
        if self.paused or self.draining:
            return 0
        partitions = self._records.partitions.values()
        most = max((p.uncommitted for p in partitions if p.place not in self._full), default=0)
        return max(0, min(self._capacity(), self._rules.uncommitted_max - most))

    def is_worth_a_poll(self, room: int) -> bool:
        """Return whether to poll when there is room for this number of records.

        A poll costs as much as dozens of records. So a prefetch that keeps all slots busy is filled up by a quarter of
        its bound at a time.
        """
        waiting = len(self._records) - self.slots.running - self.slots.behind
        return room > 0 and (waiting < self.slots.limit or room * REFILL_SHARE >= self.prefetch_limit)

    def _calls_wait(self) -> bool:
        """Return whether calls wait for acknowledgments of the broker: more records are open then."""
        return self._rules.mode is RegistrationMode.EAGER or bool(self._records.held)

    def _capacity(self) -> int:
        return self._prefetch.capacity(*self._load(), self._calls_wait(), self.slots.behind)

    def _load(self) -> tuple[int, int]:
        """Return how many records are open, and their bytes, without those that hold their partition."""
        records = self._records
        return len(records) - len(records.refused), records.size - records.refused.size

    def _share(self) -> int:
        return self._prefetch.share(len(self._records.partitions))

    def _retries_are_many(self, share: int) -> bool:
        """Return whether records of retry topics are this part of the prefetch, or more, while others are open."""
        retries = self._records.retries
        return retries < len(self._records) and retries * share >= self.prefetch_limit

    # ---- which partitions are fetched

    def polled(self, partition: Partition, sizes: Sequence[int]) -> list[Pause | Resume]:
        """Note the sizes of records just polled, bytes; return what to pause.

        There was room for them when they were asked for, unless `polling_without_room` has said otherwise. There may be
        less by now, as the limit of the prefetch moves; but a pause drops what the client has fetched.
        """
        place, before = partition.place, (self.paused, self._retries_paused)
        self._prefetch.observe_size(len(sizes), sum(sizes))
        self._taken_without_room = 0 if self._has_room else self._taken_without_room + len(sizes)
        if self._taken_without_room >= PAUSE_AFTER:
            self.paused = True
        if partition.retries and self._retries_are_many(2):
            self._retries_paused = True
        if partition.uncommitted >= self._rules.uncommitted_max:
            self._full.add(place)
        if self.slots.behind_of(place) > self._share():
            self._crowded.add(place)
        is_same = before == (self.paused, self._retries_paused)
        return self.fetch([partition] if is_same else self._records.partitions.values())

    def polling_without_room(self, answer_is_near: bool) -> list[Pause | Resume]:
        """Note that the client is polled without room; return what to pause.

        If ``answer_is_near``, the answer of a commit makes room soon, and comes with polls only.
        """
        if not self._prefetch.below_caps(*self._load()):
            self.paused = True
        elif not answer_is_near:
            self._has_room = False
        return self.fetch(self._records.partitions.values())

    def is_early(self, partition: Partition, due_s: float, now_s: float) -> list[Pause | Resume]:
        """Pause a partition whose next record is due at a later moment, on the clock that never steps."""
        self._early[partition.place] = max(due_s, now_s + LEAST_WAIT_S)
        return self.fetch([partition])

    def confirmed(self, partition: Partition) -> list[Pause | Resume]:
        """Note a confirmed commit; return what to fetch again."""
        if 2 * partition.uncommitted <= self._rules.uncommitted_max:
            self._full.discard(partition.place)
        return self.fetch([partition])

    def resume(self, now_s: float) -> list[Pause | Resume]:
        """Return what to fetch again, when a poll has ended."""
        self._prefetch.observe(now_s, self._records.settled)
        self._has_room = True
        if not self._stopped:
            return []
        # A quarter of what could be polled if no record were open, by the tighter of the two limits.
        if self.paused and self._capacity() * REFILL_SHARE >= self._prefetch.capacity(0, 0, self._calls_wait()):
            self.paused = False
            self._taken_without_room = 0
        self._early = {place: due_s for place, due_s in self._early.items() if due_s > now_s}
        self._retries_paused = self._retries_paused and self._retries_are_many(4)
        self._crowded = {place for place in self._crowded if 2 * self.slots.behind_of(place) > self._share()}
        return self.fetch(self._records.at(self._stopped))

    def drain(self) -> list[Pause | Resume]:
        """Fetch nothing more."""
        self.draining = True
        return self.fetch(self._records.partitions.values())

    def assigned(self, partition: Partition) -> list[Pause | Resume]:
        """Return whether to fetch a new partition; librdkafka may remember a pause from an earlier assignment."""
        self._stopped.add(partition.place)
        return self.fetch([partition]) or [Pause([partition.place])]

    def fetch(self, partitions: Iterable[Partition]) -> list[Pause | Resume]:
        """Return which of these partitions to pause, and which to fetch again."""
        changed = [p for p in partitions if self._may_fetch(p) is (p.place in self._stopped)]
        if not changed:
            return []
        resumed = [p.place for p in changed if p.place in self._stopped]
        paused = [p.place for p in changed if p.place not in self._stopped]
        self._stopped.difference_update(resumed)
        self._stopped.update(paused)
        return [effect for effect in (Pause(paused), Resume(resumed)) if effect.places]

    def _may_fetch(self, partition: Partition) -> bool:
        place = partition.place
        held = place in self._full or place in self._early or place in self._crowded
        # The first record of a log shows which offset to commit.
        held = held or (not partition.is_announced and partition.position != UNKNOWN)
        # So few of these are in memory, and other partitions continue.
        refused = self._records.refused
        held = held or (len(refused) > 0 and any(entry.partition.place == place for entry in refused))
        return not (held or self.paused or self.draining or (self._retries_paused and partition.retries))

    def give_up(self, partitions: Collection[Partition], left: Iterable[Entry]) -> None:
        """Forget partitions and their dropped records; ``left`` are those whose calls have ended."""
        for partition in partitions:
            self._early.pop(partition.place, None)
            for places in (self._full, self._crowded, self._stopped):
                places.discard(partition.place)
        self.slots.give_up(left)
