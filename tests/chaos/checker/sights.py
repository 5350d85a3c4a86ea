"""What the looks saw of an entry: the first one that shows it, and what that same look showed elsewhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from tests.chaos.history.entries import Republished, WaitEntry
from tests.chaos.history.look import Look


class Sights:
    """Answers by binary search: ends only grow."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self.looks = looks
        partitions = {partition for look in looks for partition in look.wait_ends}
        self._ends = _growing(looks, partitions, lambda look: look.wait_ends)
        self._stable = _growing(looks, partitions, lambda look: look.wait_stable)

    def first(self, entry: WaitEntry) -> Look | None:
        """Return the first look whose end of the wait topic lies behind an entry, None without any."""
        return self._first(self._ends, entry)

    def first_stable(self, entry: WaitEntry) -> Look | None:
        """Return the first look whose last stable offset lies behind an entry: its transaction was decided by then."""
        return self._first(self._stable, entry)

    def _first(self, ends: Mapping[int, Sequence[int]], entry: WaitEntry) -> Look | None:
        number = bisect_right(ends.get(entry.partition, ()), entry.offset)
        return self.looks[number] if number < len(self.looks) else None


def lacks(look: Look, letter: Republished) -> bool:
    """Return whether a look shows that a record of a dead letter or redelivery topic wasn't there yet.

    One that doesn't know the partition (the topic has just been made) shows nothing.
    """
    end = look.letter_ends.get((letter.topic, letter.partition))
    return end is not None and end <= letter.offset


def _growing(
    looks: Sequence[Look], partitions: set[int], ends_of: Callable[[Look], Mapping[int, int]]
) -> Mapping[int, Sequence[int]]:
    return {
        partition: list(accumulate((ends_of(look).get(partition, 0) for look in looks), max))
        for partition in partitions
    }
