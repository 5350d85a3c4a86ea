"""What the looks saw: which one shows an entry first, what it showed elsewhere, and when there was none."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from tests.chaos.history.entries import Republished, WaitEntry
from tests.chaos.history.history import Look

Name = TypeVar("Name", bound=Hashable)


class Sights:
    """Answers by binary search.

    Args:
        looks: as `growing` makes them.
    """

    def __init__(self, looks: Sequence[Look]) -> None:
        self.looks = looks
        self._ends = _columns(looks, lambda look: look.wait_ends)
        self._stable = _columns(looks, lambda look: look.wait_stable)

    def first(self, entry: WaitEntry) -> Look | None:
        """Return the first look whose end of the wait topic lies behind an entry, None without any."""
        return self._first(self._ends, entry)

    def first_stable(self, entry: WaitEntry) -> Look | None:
        """Return the first look whose last stable offset lies behind an entry: its transaction was decided by then."""
        return self._first(self._stable, entry)

    def _first(self, ends: Mapping[int, Sequence[int]], entry: WaitEntry) -> Look | None:
        number = bisect_right(ends.get(entry.partition, ()), entry.offset)
        return self.looks[number] if number < len(self.looks) else None


def growing(looks: Sequence[Look]) -> Sequence[Look]:
    """Return the looks with every end as high as it was ever seen before.

    What was below a high watermark once is acknowledged for good; a broker that has just started, or a new leader, may
    show a lower one for a moment.
    """
    grown: list[Look] = []
    stable: dict[int, int] = {}
    waits: dict[int, int] = {}
    letters: dict[tuple[str, int], int] = {}
    for look in looks:
        stable, waits = _highest(stable, look.wait_stable), _highest(waits, look.wait_ends)
        letters = _highest(letters, look.letter_ends)
        grown.append(replace(look, wait_stable=stable, wait_ends=waits, letter_ends=letters))
    return grown


def lacks(look: Look, letter: Republished) -> bool:
    """Return whether a look shows that a record of a dead letter or redelivery topic wasn't there yet.

    One that doesn't know the partition (the topic has just been made) shows nothing.
    """
    end = look.letter_ends.get((letter.topic, letter.partition))
    return end is not None and end <= letter.offset


def _highest(before: Mapping[Name, int], seen: Mapping[Name, int]) -> dict[Name, int]:
    return {**before, **{name: max(end, before.get(name, 0)) for name, end in seen.items()}}


def _columns(looks: Sequence[Look], ends_of: Callable[[Look], Mapping[int, int]]) -> Mapping[int, Sequence[int]]:
    partitions = {partition for look in looks for partition in ends_of(look)}
    return {partition: [ends_of(look).get(partition, 0) for look in looks] for partition in partitions}


# On two busy cores a look takes half a second. A processor has a margin of two.
LONGEST_LOOK_MS = 1_500


def stood_still_ms(looks: Sequence[Look], from_ms: int, to_ms: int) -> int:
    """Return for how much of a period nothing was seen, ms; pauses between looks that are as usual don't count.

    Whoever works alongside those who look may have stalled as long, with no fault of its own.

    Args:
        looks: in their order; before the first and after the last nobody meant to look.
        from_ms: when the period begins.
        to_ms: when it ends.
    """
    pauses = ((before.ended_ms, later.ended_ms) for before, later in pairwise(looks))
    return sum(
        max(0, min(until_ms, to_ms) - max(since_ms, from_ms))
        for since_ms, until_ms in pauses
        if until_ms - since_ms > LONGEST_LOOK_MS
    )
