"""A limit on how long a turn may take, whatever it waits for."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SOON_S: Final = 0.001


class TurnDeadlineError(BaseException):
    """A turn took too long. No Exception, so that nothing in between takes it for its own and goes on."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TurnDeadlineError in the block once it takes longer than `seconds`.

    By SIGALRM, so in the main thread only; a call into C that never returns isn't broken off, so waits there want a
    time-out. A timer that was set before (a test's) goes on afterwards.
    """

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TurnDeadlineError(f"took longer than {seconds:g} s")

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, max(SOON_S, left_s - (time.monotonic() - began)), interval_s)
