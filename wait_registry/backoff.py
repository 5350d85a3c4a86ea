"""Pauses between attempts: exponential, bounded, with jitter."""

from __future__ import annotations

from collections.abc import Callable


def backoff_s(failures: int, first_s: float, longest_s: float) -> float:
    """Return the longest pause after this number of failures (from 1): it doubles from ``first_s`` to ``longest_s``."""
    return float(min(longest_s, first_s * 2.0 ** min(failures - 1, 30)))


class Backoff:
    """The pauses of one loop, each between half and all of `backoff_s`.

    Args:
        first_s, longest_s: bounds of the first and of any pause, s.
        random: returns numbers from 0 to 1; the jitter keeps many clients from returning at once.
    """

    def __init__(self, first_s: float, longest_s: float, random: Callable[[], float]) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._failures = 0

    def next_s(self) -> float:
        """Return the pause after one more failure, s."""
        self._failures += 1
        return backoff_s(self._failures, self._first_s, self._longest_s) * (0.5 + self._random() / 2)

    def reset(self) -> None:
        """Start with the shortest pause again, after a success."""
        self._failures = 0
