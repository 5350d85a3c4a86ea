"""Threads that don't keep a process from ending.

At its end, Python waits for the threads of its own pools (concurrent.futures, and with it asyncio.to_thread), so one
call that never returns would keep the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class DaemonThreads:
    """At most ``count`` threads, started as they are needed.

    Args:
        count: threads at most; the caller never has more calls running.
        name: of each thread, in front of its number.

    Attributes:
        started: how many there are.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self.started = 0
        self._idle = threading.Semaphore(0)
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` in an idle thread, or a new one; it must not raise.

        Raises:
            RuntimeError: the limit of the process or of the machine is reached; ``work`` isn't run.
        """
        if not self._idle.acquire(blocking=False) and self.started < self._count:
            threading.Thread(target=self._run, name=f"{self._name}-{self.started + 1}", daemon=True).start()
            self.started += 1
        self._work.put(work)

    def close(self) -> None:
        """Let idle threads end; busy ones end after their call."""
        for _ in range(self.started):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            # Nothing may keep the last record alive while the thread is idle.
            del work
            self._idle.release()
