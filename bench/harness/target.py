"""What a figure is held to: a bound, in one direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["at least", "at most"]
SIGNS: dict[Direction, str] = {"at least": "≥", "at most": "≤"}


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that the median of a line is held to.

    Attributes:
        bound: in the line's unit.
        direction: on which side of the bound the figure is to be; the bound itself is met.
        text: what stands in the table in place of sign, bound and unit, where these don't say enough.
    """

    bound: float
    direction: Direction
    text: str = ""

    def is_met(self, value: float) -> bool:
        """Return whether the value is on the right side of the bound, or at it."""
        return value >= self.bound if self.direction == "at least" else value <= self.bound


def at_least(bound: float, text: str = "") -> Target:
    """Return the target of a figure that is to be large."""
    return Target(bound, "at least", text)


def at_most(bound: float, text: str = "") -> Target:
    """Return the target of a figure that is to be small."""
    return Target(bound, "at most", text)
