"""How many calls may run at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ConcurrencyLimit(Protocol):
    """The number of worker slots."""

    @property
    def current(self) -> int:
        """How many calls may run now."""


@dataclass(frozen=True, slots=True)
class FixedLimit:
    """Always the same number (``processor.max_in_flight``)."""

    current: int
