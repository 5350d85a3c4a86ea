"""Which of the records that may start is next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from processor.lifecycle import Entry


class Scheduler(Protocol):
    """Holds the records that wait for a worker slot."""

    def __len__(self) -> int:
        """Return how many records wait."""

    def __iter__(self) -> Iterator[Entry]:
        """Return the records that wait."""

    def add(self, entries: Iterable[Entry]) -> None:
        """Add records behind those that wait."""

    def add_first(self, entries: Iterable[Entry]) -> None:
        """Add records that have waited before."""

    def take(self, most: int) -> list[Entry]:
        """Remove and return the records that start next, at most ``most``; fewer if others must end first."""

    def remove(self, which: Callable[[Entry], bool]) -> list[Entry]:
        """Remove and return the records for which ``which`` returns True."""


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
