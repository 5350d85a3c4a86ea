"""The injected clock: wall clock for recorded times, monotonic clock for waits."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The clock of every loop and deadline."""

    def now_ms(self) -> int:
        """Return the wall clock, ms since the epoch; it may step."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never steps, from an arbitrary zero."""


class SystemClock:
    """The clock of this host."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # Not wrapped in a method, since it is called several times per record.
    monotonic = staticmethod(time.monotonic)
