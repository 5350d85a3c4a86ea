"""How long a service that was told to stop may go on waiting for others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

OVER_SEEN_S = 1.0


@contextmanager
def stop_limit(limit_s: float, stop: threading.Event, give_up: Callable[[], None]) -> Iterator[None]:
    """Call ``give_up`` when what runs within this still runs so long after it was told to stop.

    Args:
        limit_s: from the moment when ``stop`` was set, s.
        stop: set when the service is told to stop.
        give_up: has what is waited for fail at once; called in a thread of its own, at most once.
    """
    over = threading.Event()

    def watch() -> None:
        while not stop.wait(OVER_SEEN_S):
            if over.is_set():
                return
        if not over.wait(limit_s):
            log.warning("not ended %g s after being told to stop: what is waited for is given up", limit_s)
            give_up()

    threading.Thread(target=watch, name="stop-limit", daemon=True).start()
    try:
        yield
    finally:
        over.set()
