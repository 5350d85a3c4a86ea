"""Detects a blocked event loop from threads of its own: logs what blocks it, and ends a process that can't stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

log = logging.getLogger(__name__)

WARN_AFTER_S = 5.0
CHECK_EVERY_S = 1.0
# A loop that doesn't answer for this long is blocked.
ANSWER_LIMIT_S = 3.0
FAILED = 1

_BY_A_HANDLER = "An async handler must never block: await its calls, or make it a plain function (run in threads)"


class StallWatchdog:
    """Warns once each time the event loop is blocked, with the line of code that blocks it.

    Args:
        late_s: returns for how long the loop has been blocked, s; called from the watchdog's thread.
    """

    def __init__(self, late_s: Callable[[], float]) -> None:
        self._late_s = late_s
        self._warned = False
        self._ended = threading.Event()
        self._loop_thread = 0

    def start(self) -> None:
        """Start to check every second; called in the event loop's thread."""
        self._loop_thread = threading.get_ident()
        threading.Thread(target=self._run, name="stall-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop checking."""
        self._ended.set()

    def run_once(self, paused_s: float = 0.0) -> bool:
        """Check once.

        Args:
            paused_s: for how long this thread was stalled since the last check, s; then the loop did, too.

        Returns:
            Whether a warning was logged.
        """
        if paused_s >= WARN_AFTER_S:
            log.warning(
                "this process was stalled for %.0f s: it was stopped, its machine or container was paused, or it got "
                "no CPU. No record started or ended and no limit held meanwhile",
                paused_s,
            )
            return True
        late_s = self._late_s()
        if late_s < WARN_AFTER_S:
            self._warned = False
            return False
        if self._warned:
            return False
        self._warned = True
        frame = sys._current_frames().get(self._loop_thread)
        log.warning(
            "the event loop has been blocked for %.0f s%s. No record starts or ends and no limit holds meanwhile. %s",
            late_s,
            _place(frame),
            _BY_A_HANDLER,
        )
        return True

    def _run(self) -> None:
        while not (waited := _wait(self._ended, CHECK_EVERY_S))[0]:
            self.run_once(waited[1])


class StopGuard:
    """Ends the process if its event loop is blocked when the time to drain is over.

    Nothing on the loop can do that: a blocked loop runs no timer and no cancellation.

    Args:
        drain_timeout_s: ``processor.drain_timeout_s``, counted from the request to stop, s.
        stop: set by the request to stop.
        end: ends the process with a status at once; unfinished records stay registered.
    """

    def __init__(self, drain_timeout_s: float, stop: threading.Event, end: Callable[[int], object] = os._exit) -> None:
        self._drain_timeout_s = drain_timeout_s
        self._stop = stop
        self._end = end
        self._closed = threading.Event()

    def start(self) -> None:
        """Start to wait for the request to stop; called on the event loop."""
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        threading.Thread(target=self._run, args=(loop, thread), name="stop-guard", daemon=True).start()

    def close(self) -> None:
        """Let the process run: its loop has ended."""
        self._closed.set()

    def _run(self, loop: asyncio.AbstractEventLoop, loop_thread: int) -> None:
        while not self._stop.wait(CHECK_EVERY_S):
            if self._closed.is_set():
                return
        if self._closed.wait(max(0.0, self._drain_timeout_s - ANSWER_LIMIT_S - CHECK_EVERY_S)):
            return
        while not self._closed.wait(CHECK_EVERY_S):
            if _answers(loop):
                continue
            frame = sys._current_frames().get(loop_thread)
            if not self._closed.is_set():
                self._end_blocked(frame)
                return

    def _end_blocked(self, frame: FrameType | None) -> None:
        log.error(
            "ended by force: the event loop is blocked%s, and processor.drain_timeout_s = %g s is over. Unfinished "
            "records stay registered until they expire. %s",
            _place(frame),
            self._drain_timeout_s,
            _BY_A_HANDLER,
        )
        self._end(FAILED)


def _answers(loop: asyncio.AbstractEventLoop) -> bool:
    answered = threading.Event()
    try:
        loop.call_soon_threadsafe(answered.set)
    except RuntimeError:  # closed: the process is about to end by itself
        return True
    has_answered, paused_s = _wait(answered, ANSWER_LIMIT_S)
    return has_answered or paused_s >= CHECK_EVERY_S  # asked again, since the loop was stalled with this thread


def _wait(event: threading.Event, seconds: float) -> tuple[bool, float]:
    """Wait for an event; return whether it came, and for how long this thread was stalled meanwhile, s."""
    began_s = time.monotonic()
    came = event.wait(seconds)
    return came, max(0.0, time.monotonic() - began_s - seconds)


def _place(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    code = frame.f_code
    return f" in {code.co_name} ({Path(code.co_filename).name}, line {frame.f_lineno})"
