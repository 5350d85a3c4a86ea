"""An axis' scale: which place a value has on it, and where it has its ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

STEPS: Final = (1, 2, 5, 10)
TICKS: Final = 6
# Below so many decades a logarithmic axis has ticks at 2 and 5 too.
FEW_DECADES: Final = 3


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `least` to `most` on the way from `begin` to `end`.

    Attributes:
        least: the value at `begin`.
        most: the value at `end`, larger than `least`.
        begin: a place in the picture.
        end: another one.
        ticks: round values from `least` to `most`.
        logarithmic: whether equal ways are equal ratios.
    """

    least: float
    most: float
    begin: float
    end: float
    ticks: Sequence[float]
    logarithmic: bool

    @classmethod
    def over(
        cls, values: Sequence[float], begin: float, end: float, *, logarithmic: bool, from_zero: bool = False
    ) -> Scale:
        """Return a scale that holds all values and ends on ticks.

        Args:
            values: at least one; all above 0 for a logarithmic scale.
            begin: where its least value lies.
            end: where its most lies.
            logarithmic: whether equal ways are equal ratios.
            from_zero: whether a linear scale of values from 0 on begins there, so that heights compare.
        """
        ticks = _decades(min(values), max(values)) if logarithmic else _even(values, from_zero=from_zero)
        return cls(ticks[0], ticks[-1], begin, end, ticks, logarithmic)

    def at(self, value: float) -> float:
        """Return a value's place."""
        if self.logarithmic:
            part = math.log(value / self.least) / math.log(self.most / self.least)
        else:
            part = (value - self.least) / (self.most - self.least)
        return self.begin + part * (self.end - self.begin)


def _even(values: Sequence[float], *, from_zero: bool) -> list[float]:
    least, most = min(values), max(values)
    if from_zero and least > 0:
        least = 0.0
    if least == most:
        least, most = least - abs(least) / 2 - 0.5, most + abs(most) / 2 + 0.5
    raw = (most - least) / (TICKS - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((factor * power for factor in STEPS if factor * power >= raw), 10 * power)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _decades(least: float, most: float) -> list[float]:
    first, last = math.floor(math.log10(least) + 1e-9), math.ceil(math.log10(most) - 1e-9)
    last = max(last, first + 1)
    factors = (1, 2, 5) if last - first < FEW_DECADES else (1,)
    all_ticks = [factor * 10.0**power for power in range(first, last) for factor in factors] + [10.0**last]
    below = [tick for tick in all_ticks if tick <= least * (1 + 1e-9)]
    above = [tick for tick in all_ticks if tick >= most * (1 - 1e-9)]
    inner = [tick for tick in all_ticks if below[-1] <= tick <= above[0]]
    return inner if len(inner) > 1 else all_ticks
