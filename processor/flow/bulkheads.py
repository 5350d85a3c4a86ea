"""Bulkheads: a route with a ``max_in_flight`` of its own gets no more worker slots than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from processor.flow.scheduler import Scheduler, Unordered
from processor.protocol.record import Entry
from wait_registry.records.topics import TopicPartition


class Bulkheads:
    """Counts the worker slots that each route has left.

    Args:
        route_of: names the route of a record.
        limits: of the routes that have one.
    """

    def __init__(self, route_of: Callable[[Entry], int], limits: Mapping[int, int]) -> None:
        self._route_of = route_of
        self.free = dict(limits)

    def limited(self, entry: Entry) -> int | None:
        """Return the route of a record; None if the route has no limit."""
        route = self._route_of(entry)
        return route if route in self.free else None

    def give(self, entries: Iterable[Entry]) -> None:
        """Take back the slots of records whose calls have ended, or don't start."""
        for entry in entries:
            if (route := self.limited(entry)) is not None:
                self.free[route] += 1


class BulkheadScheduler:
    """Lets records start that another scheduler lets start, while their route has a free slot.

    A record whose route has none waits here, and others overtake it. Behind an ordered scheduler it keeps its place in
    its lane, so records of its own key don't.

    Args:
        inner: says which record is next.
        bulkheads: count the slots; several schedulers may share them.
    """

    def __init__(self, inner: Scheduler, bulkheads: Bulkheads) -> None:
        self._inner = inner
        self._bulkheads = bulkheads
        self._queues = {route: Unordered() for route in bulkheads.free}
        self._behind: Counter[TopicPartition] = Counter()

    @property
    def ordered(self) -> bool:
        """Whether records wait for earlier ones."""
        return self._inner.ordered

    @property
    def startable(self) -> int:
        """How many of the records that wait could start now, as far as is known before they are taken."""
        free = self._bulkheads.free
        return self._inner.startable + sum(min(len(queue), free[route]) for route, queue in self._queues.items())

    def behind_of(self, place: TopicPartition) -> int:
        """Return how many of a partition's records that wait can't start, because of others."""
        return self._inner.behind_of(place) + self._behind[place]

    def __len__(self) -> int:
        """Return how many records wait."""
        return len(self._inner) + sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Entry]:
        """Return the records that wait."""
        for queue in self._queues.values():
            yield from queue
        yield from self._inner

    def enter(self, entries: Iterable[Entry]) -> None:
        """Note records just polled, in their order, whether they may start yet or not."""
        self._inner.enter(entries)

    def leave(self, entries: Iterable[Entry]) -> None:
        """Note records that are settled or given up, and whose calls have ended."""
        self._inner.leave(entries)

    def add(self, entries: Iterable[Entry]) -> None:
        """Add records behind those that wait."""
        self._inner.add(entries)

    def add_first(self, entries: Iterable[Entry]) -> None:
        """Add records that have waited before."""
        self._inner.add_first(entries)

    def take(self, most: int) -> list[Entry]:
        """Remove and return at most ``most`` records, each with a slot of its route."""
        free = self._bulkheads.free
        taken: list[Entry] = []
        for route, queue in self._queues.items():
            of_route = queue.take(min(most - len(taken), free[route]))
            free[route] -= len(of_route)
            taken += of_route
        self._behind.subtract(entry.partition.place for entry in taken)
        while len(taken) < most and (following := self._inner.take(most - len(taken))):
            taken += [entry for entry in following if self._takes_slot(entry)]
        return taken

    def _takes_slot(self, entry: Entry) -> bool:
        route = self._bulkheads.limited(entry)
        if route is None:
            return True
        if self._bulkheads.free[route] > 0:
            self._bulkheads.free[route] -= 1
            return True
        self._queues[route].add([entry])
        self._behind[entry.partition.place] += 1
        return False

    def remove(self, which: Callable[[Entry], bool]) -> list[Entry]:
        """Remove and return the records for which ``which`` returns True."""
        removed = [entry for queue in self._queues.values() for entry in queue.remove(which)]
        self._behind.subtract(entry.partition.place for entry in removed)
        return removed + self._inner.remove(which)
