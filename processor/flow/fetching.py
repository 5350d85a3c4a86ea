"""Which partitions are fetched, and for which reasons the others aren't."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from processor.protocol.effects import Pause, Resume
from processor.protocol.partition import UNKNOWN, Partition
from wait_registry.records.topics import TopicPartition

# Records that are taken beyond the limit of the prefetch, but not beyond its caps, because a member of the group must
# poll, before all partitions are paused.
PAUSE_AFTER: Final = 4
# From the pause of a partition that waits for its time to its end, at least: each costs a fetch.
LEAST_WAIT_S: Final = 0.5


class Fetching:
    """Fetches a partition if it is announced, has room, and its first record is due, and retries leave room for others.

    Args:
        uncommitted_max: records of a partition that were polled and that no confirmed commit covers.
        partitions: that are assigned; the engine changes them.

    Attributes:
        paused: whether all are paused, because there is no room.
        retries_paused: whether retry topics are paused, because their records leave too little room for others.
        crowded: partitions that are paused because too many of their records wait for earlier ones.
        next_due_s: when the first partition that waits for its time is due, on the clock that never steps.
    """

    def __init__(self, uncommitted_max: int, partitions: Mapping[TopicPartition, Partition]) -> None:
        self._uncommitted_max = uncommitted_max
        self._partitions = partitions
        self._full: set[TopicPartition] = set()
        self._early: dict[TopicPartition, float] = {}
        self.crowded: set[TopicPartition] = set()
        self._has_room = True
        self._taken_without_room = 0
        self.paused = False
        self.retries_paused = False
        self.next_due_s = math.inf

    def room(self) -> int:
        """Return how many records may be polled without a partition having too many uncommitted ones."""
        most = max((p.uncommitted for p in self._partitions.values() if p.place not in self._full), default=0)
        return max(0, self._uncommitted_max - most)

    def polling_without_room(self) -> None:
        """Note that there is no room for what comes until the poll has ended."""
        self._has_room = False

    def poll_has_ended(self, now_s: float) -> list[Resume]:
        """Note that what comes next is polled again; return what to fetch again because its next record is due."""
        self._has_room = True
        if now_s < self.next_due_s:
            return []
        due = {place for place, due_s in self._early.items() if due_s <= now_s}
        for place in due:
            self._forget_time(place)
        return self._resume(partition for partition in self._partitions.values() if partition.place in due)

    def polled(self, partition: Partition, records: int) -> list[Pause]:
        """Note records just polled; return what to pause.

        There was room for them when they were asked for, unless `polling_without_room` has said otherwise. There may be
        less by now, as the limit of the prefetch moves; but a pause drops what the client has fetched.

        Args:
            partition: whose they are.
            records: how many.
        """
        self._taken_without_room = 0 if self._has_room else self._taken_without_room + records
        pauses: list[Pause] = []
        if partition.uncommitted >= self._uncommitted_max and partition.place not in self._full:
            self._full.add(partition.place)
            pauses.append(Pause([partition.place]))
        if self._taken_without_room >= PAUSE_AFTER and not self.paused:
            pauses.append(self.pause_all())
        return pauses

    def pause_all(self) -> Pause:
        """Fetch nothing until there is room again."""
        self.paused = True
        return Pause(list(self._partitions))

    def has_room_again(self) -> list[Resume]:
        """End the pause of all."""
        self.paused = False
        self._taken_without_room = 0
        return self._resume(self._partitions.values())

    def pause_retries(self) -> list[Pause]:
        """Fetch nothing of retry topics until their open records are fewer."""
        self.retries_paused = True
        return [Pause([partition.place for partition in self._partitions.values() if partition.retries])]

    def resume_retries(self) -> list[Resume]:
        """End the pause of retry topics."""
        self.retries_paused = False
        return self._resume(partition for partition in self._partitions.values() if partition.retries)

    def crowds(self, place: TopicPartition) -> list[Pause]:
        """Pause a partition of which too many records wait for earlier ones."""
        if place in self.crowded:
            return []
        self.crowded.add(place)
        return [Pause([place])]

    def has_thinned(self, place: TopicPartition) -> list[Resume]:
        """End this pause of a partition."""
        self.crowded.discard(place)
        return self._resume([self._partitions[place]])

    def confirmed(self, partition: Partition, is_first: bool) -> list[Resume]:
        """Note a confirmed commit, ``is_first`` says whether of a new assignment; return what to fetch again."""
        if is_first:
            return self._resume([partition])
        if partition.place not in self._full or 2 * partition.uncommitted > self._uncommitted_max:
            return []
        self._full.discard(partition.place)
        return self._resume([partition])

    def is_early(self, place: TopicPartition, due_s: float, now_s: float) -> Pause:
        """Pause a partition whose next record isn't due yet.

        Args:
            place: the partition.
            due_s: when that is, on the clock that never steps.
            now_s: the present moment, on that clock.
        """
        self._early[place] = max(due_s, now_s + LEAST_WAIT_S)
        self.next_due_s = min(self._early.values())
        return Pause([place])

    def may_fetch(self, partition: Partition) -> bool:
        """Return whether there is no reason not to fetch a partition."""
        place = partition.place
        held = place in self._full or place in self._early or place in self.crowded
        # The first record of a log shows which offset to commit.
        held = held or (not partition.is_announced and partition.position != UNKNOWN)
        return not (self.paused or held or (self.retries_paused and partition.retries))

    def _resume(self, partitions: Iterable[Partition]) -> list[Resume]:
        places = [partition.place for partition in partitions if self.may_fetch(partition)]
        return [Resume(places)] if places else []

    def forget(self, place: TopicPartition) -> None:
        """Note a partition that is given up."""
        for places in (self._full, self.crowded):
            places.discard(place)
        self._forget_time(place)

    def _forget_time(self, place: TopicPartition) -> None:
        if self._early.pop(place, None) is not None:
            self.next_due_s = min(self._early.values(), default=math.inf)
