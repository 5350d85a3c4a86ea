"""Which of the records that may start is next: ``processor.ordering``."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeAlias

from processor.protocol.record import Entry
from wait_registry.records.topics import TopicPartition

# What a lane's records have in common; None for a record without order.
LaneOf = Callable[[Entry], Hashable]


class Unordered:
    """Starts records in the order in which they came, those that have waited before first."""

    def __init__(self) -> None:
        self._first: deque[Entry] = deque()
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        """Return how many records wait."""
        return len(self._first) + len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """Return the records that wait, in their order."""
        yield from self._first
        yield from self._entries

    def add(self, entries: Iterable[Entry]) -> None:
        """Add records behind those that wait."""
        self._entries.extend(entries)

    def add_first(self, entries: Iterable[Entry]) -> None:
        """Add records that have waited before."""
        self._first.extend(entries)

    def take(self, most: int) -> list[Entry]:
        """Remove and return at most ``most`` records."""
        first, entries = self._first, self._entries
        taken = [first.popleft() for _ in range(min(most, len(first)))]
        taken += [entries.popleft() for _ in range(min(most - len(taken), len(entries)))]
        return taken

    def remove(self, which: Callable[[Entry], bool]) -> list[Entry]:
        """Remove and return the records for which ``which`` returns True."""
        removed: list[Entry] = []
        for queue in (self._first, self._entries):
            found = [entry for entry in queue if which(entry)]
            if found:
                kept = [entry for entry in queue if not which(entry)]
                queue.clear()
                queue.extend(kept)
                removed += found
        return removed


class Ordered:
    """Starts a record when every earlier record of its lane has left it (O1).

    A lane is named by its partition's place, not by the assignment: a call that continues after its partition was lost
    holds up the records that are polled after the next assignment.

    Args:
        lane_of: names the lane of a record.
    """

    def __init__(self, lane_of: LaneOf) -> None:
        self._lane_of = lane_of
        # The records of each lane in the order of polling, from the first one that hasn't left.
        self._lanes: dict[Hashable, deque[Entry]] = {}
        self._waiting: dict[Entry, None] = {}
        # Those of the records that wait that are first in their lane, or have none.
        self._startable: dict[Entry, None] = {}
        self._behind: Counter[TopicPartition] = Counter()

    @property
    def behind(self) -> int:
        """How many of the records that wait can't start, because of an earlier one."""
        return len(self._waiting) - len(self._startable)

    def behind_of(self, place: TopicPartition) -> int:
        """Return how many of a partition's records that wait can't start, because of an earlier one."""
        return self._behind[place]

    def __len__(self) -> int:
        """Return how many records wait."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[Entry]:
        """Return the records that wait, in the order in which they came."""
        return iter(self._waiting)

    def enter(self, entries: Iterable[Entry]) -> None:
        """Note records just polled, in their order, whether they may start yet or not."""
        lanes = self._lanes
        for entry in entries:
            lane = self._lane_of(entry)
            if lane is not None:
                if (queue := lanes.get(lane)) is None:
                    lanes[lane] = deque([entry])
                else:
                    queue.append(entry)

    def leave(self, entries: Iterable[Entry]) -> None:
        """Note records that are settled or given up, and whose calls have ended."""
        for entry in entries:
            lane = self._lane_of(entry)
            queue = self._lanes.get(lane)
            if queue is None:
                continue
            if queue[0] is not entry:
                # A malformed record, or one that another process handles now.
                queue.remove(entry)
                continue
            queue.popleft()
            if not queue:
                del self._lanes[lane]
            elif queue[0] in self._waiting:
                self._startable[queue[0]] = None
                self._behind[queue[0].partition.place] -= 1

    def add(self, entries: Iterable[Entry]) -> None:
        """Add records behind those that wait."""
        for entry in entries:
            self._waiting[entry] = None
            queue = self._lanes.get(self._lane_of(entry))
            if queue is None or queue[0] is entry:
                self._startable[entry] = None
            else:
                self._behind[entry.partition.place] += 1

    def add_first(self, entries: Iterable[Entry]) -> None:
        """Add records that have waited before; the order of a lane is that of polling all the same."""
        self.add(entries)

    def take(self, most: int) -> list[Entry]:
        """Remove and return at most ``most`` records that no earlier one holds up."""
        taken = [entry for entry, _ in zip(self._startable, range(most), strict=False)]
        for entry in taken:
            del self._startable[entry], self._waiting[entry]
        return taken

    def remove(self, which: Callable[[Entry], bool]) -> list[Entry]:
        """Remove and return the records for which ``which`` returns True; they keep their places in their lanes."""
        removed = [entry for entry in self._waiting if which(entry)]
        for entry in removed:
            del self._waiting[entry]
            if entry in self._startable:
                del self._startable[entry]
            else:
                self._behind[entry.partition.place] -= 1
        return removed


Scheduler: TypeAlias = Unordered | Ordered


def key_lane(entry: Entry) -> Hashable:
    """Return the lane of a record by its partition and key; a record without a key has none."""
    key = entry.record.key
    return None if key is None else (entry.partition.place, key)


def partition_lane(entry: Entry) -> Hashable:
    """Return the lane of a record by its partition."""
    return entry.partition.place
