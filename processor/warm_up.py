"""The gate of a new assignment: the first registered records wait until a commit that covers them is confirmed.

Without it a record that kills the process at once would be consumed for ever: the process dies before the first commit,
and the next owner begins with the same record. With it the commit is past the record when it kills; the record's wait
record stands, expires, and is dead-lettered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class WarmUp(Generic[T]):
    """The gate of one partition for one assignment; closed at first, then open for good.

    Args:
        size: how many records start under confirmed commits before the gate opens. With the number of handlers that
            run at once, everything behind them starts only after one of them has finished.
    """

    __slots__ = ("_held", "_left", "is_over")

    def __init__(self, size: int) -> None:
        self.is_over = False
        self._left = size
        self._held: list[tuple[int, T]] = []

    def hold(self, offset: int, item: T) -> None:
        """Keep ``item``, registered and consumed at ``offset``, until a commit covers it or the gate opens."""
        self._held.append((offset, item))

    def confirm(self, next_offset: int) -> list[T]:
        """Take note of a confirmed commit.

        Args:
            next_offset: the committed offset, which is that of the next record to consume.

        Returns:
            What may start now, in order: what the commit covers; everything when that completes the window.
        """
        covered = self._take(lambda offset: offset < next_offset)
        self._left -= len(covered)
        if covered and self._left <= 0:
            covered += self.open()
        return covered

    def open(self) -> list[T]:
        """Open the gate and return what was held, in order."""
        self.is_over = True
        return self._take(lambda offset: True)

    def held(self) -> list[tuple[int, T]]:
        """Return offset and item of everything held."""
        return self._held

    def remove(self, which: Callable[[T], bool]) -> list[T]:
        """Forget and return the held items that ``which`` says yes to; they may be held again."""
        removed = [item for _, item in self._held if which(item)]
        self._held = [(at, item) for at, item in self._held if not which(item)]
        return removed

    def drop_from(self, offset: int) -> list[T]:
        """Forget and return what was consumed at or above ``offset``: the next owner will consume it."""
        return self._take(lambda at: at >= offset)

    def _take(self, which: Callable[[int], bool]) -> list[T]:
        dropped = [item for at, item in self._held if which(at)]
        self._held = [(at, item) for at, item in self._held if not which(at)]
        return dropped
