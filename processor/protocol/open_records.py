"""The records that were polled and have neither an outcome nor another owner."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final

from processor.protocol.record import IN_FLIGHT, Entry, State
from wait_registry.records.topics import TopicPartition

_MISSING: Final = object()
_TO_SETTLE: Final = frozenset(
    {
        *(State.HELD, State.READY_REGISTERED, State.RENEWING),
        *(State.READY_UNREGISTRABLE, State.RUNNING_UNREGISTRABLE),
    }
)


class OpenRecords:
    """Every open record, in the order of polling, those that aren't registered apart.

    Attributes:
        unregistered: nothing has been written about them.
        size: keys, values and headers of all, bytes.
        retries: how many were polled from retry topics.
    """

    def __init__(self) -> None:
        self.unregistered: dict[Entry, None] = {}
        self._others: dict[Entry, None] = {}
        self.size = 0
        self.retries = 0

    def __len__(self) -> int:
        return len(self.unregistered) + len(self._others)

    def __iter__(self) -> Iterator[Entry]:
        yield from self.unregistered
        yield from self._others

    def add(self, entries: Iterable[Entry], registered: bool = False) -> None:
        """Take records that were polled; ``registered`` is whether they are registered at once."""
        (self._others if registered else self.unregistered).update(dict.fromkeys(entries))

    def move(self, entries: Iterable[Entry]) -> None:
        """Note that something is written about these records: a registration or a dead letter."""
        for entry in entries:
            if self.unregistered.pop(entry, _MISSING) is None:
                self._others[entry] = None

    def close(self, entries: Iterable[Entry]) -> None:
        """Forget records that are settled or dropped."""
        some_retries = self.retries > 0
        for entry in entries:
            self.size -= entry.size
            if some_retries and entry.partition.retries:
                self.retries -= 1
            if entry.lifetime is not None or self.unregistered.pop(entry, _MISSING) is _MISSING:
                del self._others[entry]

    def in_flight(self, places: Iterable[TopicPartition] | None = None) -> int:
        """Return how many wait records aren't acknowledged, of all partitions or of some; from any thread."""
        wanted = None if places is None else set(places)
        return sum(
            entry.state in IN_FLIGHT and (wanted is None or entry.partition.place in wanted)
            for entry in list(self._others)
        )

    def unfinished(self, places: Iterable[TopicPartition], again: Container[State]) -> int:
        """Return how many records of partitions the next owner would handle again, or not know, if it began now.

        Args:
            places: the partitions.
            again: the states of records that are worked on and that the next owner would handle again.
        """
        wanted = set(places)
        of_them = (entry.state for entry in self if entry.partition.place in wanted)
        return sum(state in IN_FLIGHT or state in again for state in of_them)

    def registering_s(self, now_s: float) -> float:
        """Return for how long the oldest wait record has waited for its acknowledgment, s; 0 without; any thread."""
        waiting = [
            entry.lifetime.registered_s for entry in list(self._others) if entry.lifetime and entry.state in IN_FLIGHT
        ]
        return max(0.0, now_s - min(waiting)) if waiting else 0.0

    def unsettled(self) -> int:
        """Return how many records an orderly stop must settle, or start, before it gives the partitions up.

        These are the records that aren't registered, which another process would handle again, and registered ones
        whose calls haven't started.
        """
        return len(self.unregistered) + sum(entry.state in _TO_SETTLE for entry in self._others)
