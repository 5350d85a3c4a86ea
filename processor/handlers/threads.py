"""Threads for plain handlers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from processor.handlers.descriptors import ShortageError


class NoThreadError(ShortageError):
    """The process can't start one more thread: the call hasn't begun."""


class Threads:
    """At most ``count`` daemon threads, started as they are needed.

    The standard library's pool is waited for when the interpreter ends, so one handler that never returns would keep
    the process from ending.

    Args:
        count: threads at most; the caller never has more calls running.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._started = 0
        self._idle = threading.Semaphore(0)
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` in an idle thread, or a new one; it must not raise.

        Raises:
            NoThreadError: the limit of the process or of the machine is reached; ``work`` isn't run.
        """
        if not self._idle.acquire(blocking=False) and self._started < self._count:
            try:
                threading.Thread(target=self._run, name=f"handler-{self._started + 1}", daemon=True).start()
            except RuntimeError as error:
                raise NoThreadError(
                    f"{error}, {self._started} handlers run in threads already. Allow the process more threads "
                    "(ulimit -u, the container's pids limit), or lower processor.max_in_flight."
                ) from error
            self._started += 1
        self._work.put(work)

    def close(self) -> None:
        """Let idle threads end; busy ones end after their call."""
        for _ in range(self._started):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            # Nothing may keep the last record alive while the thread is idle.
            del work
            self._idle.release()
