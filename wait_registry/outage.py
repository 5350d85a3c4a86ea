"""Working through an outage: repeat, with pauses that are exponential, bounded, and have jitter."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from wait_registry.errors import TransientError

T = TypeVar("T")


def through_outage(
    work: Callable[[], T],
    pause: Callable[[Exception], float | None],
    sleep: Callable[[float], object],
    outage: tuple[type[Exception], ...] = (TransientError,),
) -> T:
    """Repeat a piece of work until it succeeds, or until its outage is given up.

    This is the only loop around such work: what ``work`` calls doesn't repeat by itself.

    Args:
        work: starts from its beginning each time.
        pause: reports the error, and returns how long to wait, s; None gives up.
        sleep: waits for this time, s; `threading.Event.wait` of a request to stop ends the pause early.
        outage: errors that may pass.

    Returns:
        What ``work`` returned.

    Raises:
        Exception: that of ``work``, if it is none of ``outage``, or if it was given up.
    """
    while True:
        try:
            return work()
        except outage as error:
            pause_s = pause(error)
            if pause_s is None:
                raise
        sleep(pause_s)


def backoff_s(failures: int, first_s: float, longest_s: float) -> float:
    """Return the longest pause after this number of failures (from 1): it doubles from ``first_s`` to ``longest_s``."""
    return float(min(longest_s, first_s * 2.0 ** min(failures - 1, 30)))


class Backoff:
    """The pauses of one loop, each between half and all of `backoff_s`.

    Args:
        first_s, longest_s: bounds of the first and of any pause, s.
        random: returns numbers from 0 to 1; the jitter keeps many clients from returning at once.
        forget_s: a failure so long after the last pause doesn't repeat an earlier one, s.
    """

    def __init__(
        self, first_s: float, longest_s: float, random: Callable[[], float], forget_s: float = math.inf
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._forget_s = forget_s
        self._failures = 0
        self._paused_until = 0.0

    def next_s(self) -> float:
        """Return the pause after one more failure, s."""
        now = time.monotonic()
        if now - self._paused_until > self._forget_s:
            self._failures = 0
        self._failures += 1
        pause_s = backoff_s(self._failures, self._first_s, self._longest_s) * (0.5 + self._random() / 2)
        self._paused_until = now + pause_s
        return pause_s

    def reset(self) -> None:
        """Start with the shortest pause again, after a success."""
        self._failures = 0
