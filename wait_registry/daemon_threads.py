"""Threads that don't keep a process from ending.

At its end, Python waits for the threads of its own pools (concurrent.futures, and with it asyncio.to_thread), so one
call that never returns would keep the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


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


async def in_daemon_thread(name: str, work: Callable[..., T], *arguments: Any) -> T:
    """Return what a call returns, or raise what it raises; made in a thread of its own, of this name.

    Use it instead of asyncio.to_thread, whose few threads a handler of the user may keep. If the caller is cancelled,
    the call continues, and what it comes to is lost.
    """
    return await asyncio.wrap_future(_started(name, work, *arguments))


def _started(name: str, work: Callable[..., T], *arguments: Any) -> Future[T]:
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # the thread can't be cancelled
    threading.Thread(target=_answer, args=(answer, work, *arguments), name=name, daemon=True).start()
    return answer


def _answer(answer: Future[T], work: Callable[..., T], *arguments: Any) -> None:
    try:
        answer.set_result(work(*arguments))
    except BaseException as error:  # noqa: BLE001 - raised by the caller
        answer.set_exception(error)
        # The error's traceback has this frame.
        del answer
