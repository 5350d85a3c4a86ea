"""A clock that goes on when the test says so."""

from __future__ import annotations

from wait_registry.clock import SystemClock


class HaltedClock(SystemClock):
    """Its monotonic time is ``now_s``."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s
