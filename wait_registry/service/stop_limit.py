"""Limits how long a service waits for others after a request to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 1.0


@contextmanager
def stop_limit(limit_s: float, stop: threading.Event, give_up: Callable[[], None]) -> Iterator[None]:
    """Call ``give_up`` if the block still runs this long after the request to stop.

    Args:
        limit_s: counted from when ``stop`` is set, s.
        stop: set to request the stop.
        give_up: makes all waits fail at once; called in a thread of its own, at most once.
    """
    over = threading.Event()

    def watch() -> None:
        while not stop.wait(POLL_INTERVAL_S):
            if over.is_set():
                return
        if not over.wait(limit_s):
            log.warning("still running %g s after the request to stop; giving up what the service waits for", limit_s)
            give_up()

    threading.Thread(target=watch, name="stop-limit", daemon=True).start()
    try:
        yield
    finally:
        over.set()
