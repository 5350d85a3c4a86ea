"""The assigned partitions, and the records that were polled and have neither an outcome nor another owner."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from processor.protocol.partition import Partition
from processor.protocol.record import IN_FLIGHT, Entry, State, Step
from processor.protocol.results import DeadLetter, Retry
from wait_registry.records.topics import TopicPartition

# Between two attempts to write a refused dead letter: an operator may raise the limit.
AGAIN_S: Final = 30.0
_MISSING: Final = object()
_UNREGISTRABLE: Final = frozenset({State.READY_UNREGISTRABLE, State.RUNNING_UNREGISTRABLE})
_TO_SETTLE: Final = frozenset({State.HELD, State.READY_REGISTERED, State.RENEWING}) | _UNREGISTRABLE


class RefusedDeadLetters:
    """Records whose dead letters are too large for their topic, and when these are written again.

    Each holds its partition until the topic takes it, or until its wait record is acknowledged if that comes later.
    """

    def __init__(self) -> None:
        self._again_s: dict[Entry, float] = {}

    def __len__(self) -> int:
        return len(self._again_s)

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._again_s

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._again_s))

    @property
    def size(self) -> int:
        """Their keys, values and headers, bytes."""
        return sum(entry.size for entry in self._again_s)

    def add(self, entry: Entry, now_s: float) -> None:
        """Note a refusal."""
        self._again_s[entry] = now_s + AGAIN_S

    def remove(self, entry: Entry) -> None:
        """Forget a record that is settled or given up, if it is here."""
        self._again_s.pop(entry, None)

    def due(self, now_s: float) -> list[Entry]:
        """Return the records whose dead letters are written again now; they stay until these are acknowledged."""
        due = [entry for entry, again_s in self._again_s.items() if again_s <= now_s]
        self._again_s.update(dict.fromkeys(due, math.inf))
        return due


class OpenRecords:
    """The partitions, and every open record in the order of polling, those apart about which nothing is written.

    Attributes:
        partitions: that are assigned now; a record stays open when its partition is given up if it is settled here.
        unregistered: neither a registration nor a dead letter or retry record of them was ever sent.
        held: those of each partition that are registered before their calls, and wait for the broker.
        refused: whose dead letters their topic has refused.
        size: keys, values and headers of all, bytes.
        retries: how many were polled from retry topics.
        settled: how many records have been settled since the start.
    """

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.unregistered: dict[Entry, None] = {}
        self._others: dict[Entry, None] = {}
        self.held: dict[Partition, deque[Entry]] = {}
        self.refused = RefusedDeadLetters()
        self.size = self.retries = self.settled = 0

    def __len__(self) -> int:
        return len(self.unregistered) + len(self._others)

    def __iter__(self) -> Iterator[Entry]:
        yield from self.unregistered
        yield from self._others

    def assign(self, partition: Partition) -> None:
        """Take a partition over."""
        self.partitions[partition.place] = partition

    def give_up(self, partition: Partition) -> None:
        """Forget a partition, not its records."""
        del self.partitions[partition.place]

    def is_assigned(self, partition: Partition) -> bool:
        """Return whether an assignment hasn't ended."""
        return self.partitions.get(partition.place) is partition

    def at(self, places: Iterable[TopicPartition]) -> list[Partition]:
        """Return the partitions at these places that are assigned."""
        return [self.partitions[place] for place in places if place in self.partitions]

    def add(self, entries: Sequence[Entry], registered: bool = False) -> None:
        """Take records of one partition just polled; ``registered`` is whether they are registered at once."""
        self.size += sum([entry.size for entry in entries])
        if entries and entries[0].partition.retries:
            self.retries += len(entries)
        (self._others if registered else self.unregistered).update(dict.fromkeys(entries))

    def fail(self, entry: Entry, outcome: DeadLetter | Retry) -> bool:
        """Give a record the outcome that is published; return whether it was open."""
        failed = entry.take(Step.FAIL, outcome)
        if failed:
            self.move([entry])
        return failed

    def settle(self, entries: Sequence[Entry]) -> None:
        """Let commits pass records that have an outcome, and forget them."""
        for entry in entries:
            entry.partition.make_safe(entry.number)
        self.close(entries)
        self.settled += len(entries)

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

        In the states ``again`` it would handle them again. A refused dead letter isn't waited for.
        """
        wanted = set(places)
        waited_for = (entry for entry in self if entry.partition.place in wanted and entry not in self.refused)
        return sum(entry.state in IN_FLIGHT or entry.state in again for entry in waited_for)

    def registering_s(self, now_s: float) -> float:
        """Return for how long the oldest wait record has waited for its acknowledgment, s; 0 without; any thread."""
        waiting = [
            entry.lifetime.registered_s for entry in list(self._others) if entry.lifetime and entry.state in IN_FLIGHT
        ]
        return max(0.0, now_s - min(waiting)) if waiting else 0.0

    def unsettled(self) -> int:
        """Return how many records an orderly stop must settle, or start, before it gives the partitions up.

        These are the records about which nothing is written, which another process would handle again, and those of
        the others whose calls haven't started and that wait for no report. What is sent is waited for as `in_flight`.
        """
        return len(self.unregistered) + sum(entry.state in _TO_SETTLE for entry in self._others)
