"""Which partitions are fetched: all, all but the full ones, or none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from processor.events import Pause, Resume
from processor.partition import Partition
from wait_registry.records.topics import TopicPartition

# Records that are taken beyond the limit of the prefetch, but not beyond its caps, because a member of the group must
# poll, before all partitions are paused.
PAUSE_AFTER: Final = 4


class Fetching:
    """Pauses a partition that has too many uncommitted records, and all when there is no room.

    Args:
        uncommitted_max: records of a partition that were polled and that no confirmed commit covers.
    """

    def __init__(self, uncommitted_max: int) -> None:
        self._uncommitted_max = uncommitted_max
        self._full: set[TopicPartition] = set()
        self._has_room = True
        self._taken_without_room = 0
        self.paused = False

    def room(self, partitions: Iterable[Partition]) -> int:
        """Return how many records may be polled without a partition having too many uncommitted ones."""
        most = max((p.uncommitted for p in partitions if p.place not in self._full), default=0)
        return max(0, self._uncommitted_max - most)

    def is_half_full(self, partition: Partition) -> bool:
        """Return whether a partition should commit soon."""
        return 2 * partition.uncommitted >= self._uncommitted_max

    def polling_without_room(self) -> None:
        """Note that there is no room for what comes until the poll has ended."""
        self._has_room = False

    def poll_has_ended(self) -> None:
        """Note that what comes next is polled again."""
        self._has_room = True

    def polled(self, partition: Partition, records: int, all_: Iterable[TopicPartition]) -> list[Pause]:
        """Note records just polled; return what to pause.

        There was room for them when they were asked for, unless `polling_without_room` has said otherwise. There may be
        less by now, as the limit of the prefetch moves; but a pause drops what the client has fetched.

        Args:
            partition: whose they are.
            records: how many.
            all_: every partition.
        """
        self._taken_without_room = 0 if self._has_room else self._taken_without_room + records
        pauses: list[Pause] = []
        if partition.uncommitted >= self._uncommitted_max and partition.place not in self._full:
            self._full.add(partition.place)
            pauses.append(Pause([partition.place]))
        if self._taken_without_room >= PAUSE_AFTER and not self.paused:
            pauses.append(self.pause_all(all_))
        return pauses

    def pause_all(self, all_: Iterable[TopicPartition]) -> Pause:
        """Fetch nothing until there is room again."""
        self.paused = True
        return Pause(list(all_))

    def committed(self, partition: Partition) -> list[Resume]:
        """Note a confirmed commit; return what to fetch again."""
        if partition.place not in self._full or 2 * partition.uncommitted > self._uncommitted_max:
            return []
        self._full.discard(partition.place)
        return [] if self.paused else [Resume([partition.place])]

    def has_room_again(self, all_: Iterable[TopicPartition]) -> Resume:
        """End the pause of all."""
        self.paused = False
        self._taken_without_room = 0
        return Resume([place for place in all_ if place not in self._full])

    def forget(self, place: TopicPartition) -> None:
        """Note a partition that is given up."""
        self._full.discard(place)
