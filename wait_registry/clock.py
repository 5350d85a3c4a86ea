"""Time, injected: wall clock for what is written down, monotonic clock for what is waited for."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What every loop and deadline reads the time from."""

    def now_ms(self) -> int:
        """Return the wall clock as ms since the epoch (may step)."""

    def monotonic(self) -> float:
        """Return seconds of a clock that never steps (its zero means nothing)."""


class SystemClock:
    """The clock of this host."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # Not a method around it: it is asked several times for every record.
    monotonic = staticmethod(time.monotonic)
