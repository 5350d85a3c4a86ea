"""A word about an event loop that stands still, said by a thread of its own: the loop can't."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

log = logging.getLogger(__name__)

WARN_AFTER_S = 5.0
LOOK_EVERY_S = 1.0

_PROCESSOR = Path(__file__).parent
_CALLS_THE_HANDLER = (_PROCESSOR / "attempts.py", *(_PROCESSOR / "handlers").glob("*.py"))
_BY_A_HANDLER = (
    "An async handler must never block: await what it waits for, or make it a plain function (run in threads)"
)
_BY_A_REBALANCE = "A rebalance waits for the broker's answer; it is given up soon, and work goes on"


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
        frame = sys._current_frames().get(self._loop_thread)
        log.warning(
            "the event loop has stood still for %.0f s%s: no record is begun or ended and no limit holds meanwhile. %s",
            late_s,
            "" if frame is None else f" in {_place(frame)}",
            _BY_A_REBALANCE if _in_a_rebalance(frame) else _BY_A_HANDLER,
        )
        return True

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.run_once()


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({Path(code.co_filename).name}, line {frame.f_lineno})"


def _in_a_rebalance(frame: FrameType | None) -> bool:
    """Return whether this package's own code holds the loop, not what it has called: nothing else in it ever waits."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_PROCESSOR):
            return file not in _CALLS_THE_HANDLER
        frame = frame.f_back
    return False
