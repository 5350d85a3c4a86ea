"""The spread of a figure over the rounds: its median, and the least and the most that was seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and most of some values; `count` says of how many."""

    median: float
    least: float
    most: float
    count: int


def spread_of(values: Iterable[float]) -> Spread:
    """Return the spread of values, one a round.

    A ratio's is that of the rounds' ratios, not the ratio of two spreads: both sides of a ratio were measured in the
    same minutes, and what disturbed one disturbed the other.

    Raises:
        ValueError: there are no values.
    """
    seen = list(values)
    if not seen:
        raise ValueError("saw no values, expected one a round")
    return Spread(median(seen), min(seen), max(seen), len(seen))
