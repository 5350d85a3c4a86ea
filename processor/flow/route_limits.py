"""Limits of routes: a route with a ``max_in_flight`` of its own gets no more worker slots than that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from processor.flow.scheduler import Scheduler, Unordered
from processor.protocol.record import Entry
from wait_registry.records.topics import TopicPartition


class RouteLimits:
    """Counts the worker slots that each route has left, and holds the records that wait for one.

    A record whose route has none waits here, and others overtake it. From an ordered scheduler it keeps its place in
    its lane, so records of its own key don't.

    Args:
        route_of: names the route of a record.
        limits: of the routes that have one.

    Attributes:
        free: slots of each route.
        queues: the records that wait, by their route, those of retry topics apart.
    """

    def __init__(self, route_of: Callable[[Entry], int], limits: Mapping[int, int]) -> None:
        self._route_of = route_of
        self.free = dict(limits)
        self.queues = {(route, retries): Unordered() for route in limits for retries in (False, True)}

    @property
    def behind(self) -> int:
        """How many of the records that wait here can't start yet."""
        return sum(max(0, len(queue) - self.free[route]) for (route, _), queue in self.queues.items())

    def behind_of(self, place: TopicPartition) -> int:
        """Return how many of a partition's records wait here."""
        return sum(entry.partition.place == place for queue in self.queues.values() for entry in queue)

    def give(self, entries: Iterable[Entry]) -> None:
        """Take back the slots of records whose calls have ended, or don't start."""
        for entry in entries:
            route = self._route_of(entry)
            if route in self.free:
                self.free[route] += 1

    def take(self, scheduler: Scheduler, most: int, retries: bool) -> list[Entry]:
        """Remove and return at most ``most`` records, each with a slot of its route.

        Args:
            scheduler: says which record is next, behind those that wait here.
            most: how many.
            retries: whether those are records of retry topics.
        """
        taken: list[Entry] = []
        for route, free in self.free.items():
            of_route = self.queues[route, retries].take(min(most - len(taken), free))
            self.free[route] -= len(of_route)
            taken += of_route
        while len(taken) < most and (following := scheduler.take(most - len(taken))):
            taken += [entry for entry in following if self._takes_slot(entry)]
        return taken

    def _takes_slot(self, entry: Entry) -> bool:
        route = self._route_of(entry)
        if route not in self.free:
            return True
        if self.free[route] > 0:
            self.free[route] -= 1
            return True
        self.queues[route, entry.partition.retries].add([entry])
        return False
