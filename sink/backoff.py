"""Pauses between attempts: exponential, with jitter, capped."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """Doubles from ``first_s`` to ``longest_s``; ``reset`` after it went well."""

    def __init__(self, first_s: float, longest_s: float, random: Callable[[], float]) -> None:
        """``random`` gives numbers from 0 to 1: the jitter, which keeps many from coming back at once."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._failures = 0

    def next_s(self) -> float:
        """Return the next pause in s: between half and all of the bound."""
        bound = min(self._longest_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return bound * (0.5 + self._random() / 2)

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._failures = 0
