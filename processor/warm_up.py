"""Assignment warm-up: the first records of an assignment start only after a confirmed commit that covers them.

Without it, a record that kills the process at once would be polled indefinitely: the process dies before the first
commit, and the next owner starts with the same record. With it, the commit is past such a record when it starts; its
registration expires, and the record is dead-lettered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class WarmUp(Generic[T]):
    """The warm-up of one partition in one assignment.

    Args:
        size: how many records start under confirmed commits before the warm-up is over. With ``max_in_flight``, every
            later record starts only after one of them has finished.
    """

    __slots__ = ("_held", "_left", "is_over")

    def __init__(self, size: int) -> None:
        self.is_over = False
        self._left = size
        self._held: list[tuple[int, T]] = []

    def hold(self, offset: int, item: T) -> None:
        """Hold ``item``, registered and polled at ``offset``, until a commit covers it or the warm-up ends."""
        self._held.append((offset, item))

    def confirm(self, next_offset: int) -> list[T]:
        """Note a confirmed commit.

        Args:
            next_offset: the committed offset, which is that of the next record to poll.

        Returns:
            The items that may start now, in order: those that the commit covers, or all of them if that ends the
            warm-up.
        """
        covered = self._take(lambda offset: offset < next_offset)
        self._left -= len(covered)
        if covered and self._left <= 0:
            covered += self.end()
        return covered

    def end(self) -> list[T]:
        """End the warm-up and return the held items, in order."""
        self.is_over = True
        return self._take(lambda offset: True)

    def held(self) -> list[tuple[int, T]]:
        """Return offset and item of everything held."""
        return self._held

    def remove(self, which: Callable[[T], bool]) -> list[T]:
        """Remove and return the held items for which ``which`` returns True; they may be held again."""
        removed = [item for _, item in self._held if which(item)]
        self._held = [(at, item) for at, item in self._held if not which(item)]
        return removed

    def drop_from(self, offset: int) -> list[T]:
        """Remove and return the items polled at or above ``offset``, which the next owner will poll."""
        return self._take(lambda at: at >= offset)

    def _take(self, which: Callable[[int], bool]) -> list[T]:
        dropped = [item for at, item in self._held if which(at)]
        self._held = [(at, item) for at, item in self._held if not which(at)]
        return dropped
