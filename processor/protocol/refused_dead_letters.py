"""Records whose dead letters are too large for their topic: each holds its partition until the topic takes it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Final

from processor.protocol.partition import Partition
from processor.protocol.record import Entry
from wait_registry.records.topics import TopicPartition

# Between two attempts: an operator may raise the limit.
AGAIN_S: Final = 30.0


class RefusedLetters:
    """The records, and when their dead letters are written again."""

    def __init__(self) -> None:
        self._again_s: dict[Entry, float] = {}

    def __len__(self) -> int:
        return len(self._again_s)

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

    def of(self, partitions: Collection[Partition]) -> list[Entry]:
        """Return the records of partitions."""
        return [entry for entry in self._again_s if entry.partition in partitions]

    def at(self, places: Collection[TopicPartition]) -> int:
        """Return how many records are of these places."""
        return sum(entry.partition.place in places for entry in self._again_s)
