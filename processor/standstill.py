"""A word about an event loop that stands still, said by a thread of its own: the loop can't."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

WARN_AFTER_S = 5.0
LOOK_EVERY_S = 1.0


class StandstillWatch:
    """Warns once for each standstill of the event loop, with the line of code that holds it.

    Args:
        late_s: returns for how long the loop has not turned, s; called from the watch's thread.
    """

    def __init__(self, late_s: Callable[[], float]) -> None:
        self._late_s = late_s
        self._told = False
        self._ended = threading.Event()
        self._loop_thread = 0

    def start(self) -> None:
        """Begin to look every second; called in the event loop's thread."""
        self._loop_thread = threading.get_ident()
        threading.Thread(target=self._run, name="standstill-watch", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()

    def run_once(self) -> bool:
        """Look once.

        Returns:
            Whether a warning was logged.
        """
        late_s = self._late_s()
        if late_s < WARN_AFTER_S:
            self._told = False
            return False
        if self._told:
            return False
        self._told = True
        log.warning(
            "the event loop has stood still for %.0f s%s: no record is begun or ended and no limit holds meanwhile. An "
            "async handler must never block: await what it waits for, or make it a plain function (run in threads)",
            late_s,
            _place(self._loop_thread),
        )
        return True

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.run_once()


def _place(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    if frame is None:
        return ""
    code = frame.f_code
    return f" in {code.co_name} ({Path(code.co_filename).name}, line {frame.f_lineno})"
