"""An answer of Kafka that several pages show: asked for once in some seconds, however many pages are asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from wait_registry.settings.root import Settings

KEPT_S: Final = 5.0


class KeptLine:
    """Keeps a line for some seconds. Of several threads one asks, and the others wait for its answer.

    Args:
        ask: returns the line; it doesn't raise.
        clock: returns the seconds of a clock that never steps.
    """

    def __init__(self, ask: Callable[[Settings], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._line: str | None = None
        self._asked_s = 0.0

    def __call__(self, settings: Settings) -> str:
        """Return the line of these settings, which are the same at each call."""
        with self._lock:
            if self._line is None or self._clock() - self._asked_s >= KEPT_S:
                self._line = self._ask(settings)
                self._asked_s = self._clock()
            return self._line
