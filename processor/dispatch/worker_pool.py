"""Calls handlers: as many workers as there are worker slots, each a task that is reused."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from processor.dispatch.attempts import Attempts
from processor.dispatch.deadline import Deadline, DeadlineWatchdog, log_fields
from processor.events import Discarded, Done, Failed, Result
from processor.intake.taken import Taken
from processor.lifecycle import Entry
from processor.service.ending import Fault
from processor.service.stats import Stats
from processor.service.traces import Traces
from wait_registry.clock import Clock
from wait_registry.display import one_line
from wait_registry.errors import ConfigurationError

log = logging.getLogger(__name__)

STOP_LIMIT_S = 5.0
REPORTS_PER_TURN = 8
# What metrics call them.
RESULTS: Final[Mapping[type[Any], str]] = {Done: "done", Discarded: "discarded", Failed: "failed"}


class WorkerPool:
    """Runs the calls that the engine starts.

    Workers are started when they are first needed, and reused. At most one wake-up is pending, and a worker that takes
    a record wakes the next one while others wait. So calls that don't wait cost one worker, and few turns of the loop.

    Args:
        attempts: calls the handler.
        watchdog: ends attempts that are over their limit.
        ended: called when calls have ended; `take_ended` returns them. It may start others.
        stop_limit_s: how long `stop` waits for handlers that it has cancelled, s.
        traces: begins the trace of each record that starts, if tracing is on.
    """

    def __init__(
        self,
        attempts: Attempts,
        watchdog: DeadlineWatchdog,
        clock: Clock,
        fault: Fault,
        stats: Stats,
        ended: Callable[[], None],
        stop_limit_s: float = STOP_LIMIT_S,
        traces: Traces | None = None,
    ) -> None:
        self._attempts = attempts
        self._slots = attempts.slots
        self._watchdog = watchdog
        self._monotonic = clock.monotonic
        self._fault = fault
        self._queue = stats.queue
        self._seconds = {kind: stats.seconds[name] for kind, name in RESULTS.items()}
        self._report_ended = ended
        self._stop_limit_s = stop_limit_s
        self._traces = traces
        self._waiting: deque[Entry] = deque()
        self._ended: list[tuple[Entry, Result | None]] = []
        self._loop = asyncio.get_running_loop()
        self._report_due = False
        self._reports = 0  # in this turn of the event loop
        self._deadlines: list[Deadline] = []
        self._resting: list[asyncio.Future[None]] = []
        self.workers: list[asyncio.Task[None]] = []
        self._waking = False
        self._stopping = False

    @property
    def running(self) -> int:
        """How many calls run."""
        return sum(deadline.record is not None for deadline in list(self._deadlines))

    def start(self, entries: Iterable[Entry]) -> None:
        """Call the handler for these records."""
        self._waiting.extend(entries)
        self._wake()

    def cancel(self, entries: Iterable[Entry]) -> None:
        """Cancel the calls of these records; each ends without an outcome."""
        running = {deadline.record: deadline for deadline in self._deadlines if deadline.record is not None}
        for entry in entries:
            if (deadline := running.get(entry.record)) is not None:
                if not deadline.revoked:
                    deadline.revoke()
            elif entry in self._waiting:
                self._waiting.remove(entry)
                self._end(entry, None)

    def blocked(self) -> int:
        """Return how many calls have an outcome and keep their slot, because their thread doesn't return."""
        return 0 if self._slots is None else self._slots.blocked

    def take_ended(self) -> list[tuple[Entry, Result | None]]:
        """Return the calls that have ended since the last time, each with its outcome."""
        ended, self._ended = self._ended, []
        return ended

    async def stop(self) -> None:
        """Start nothing more and cancel what runs: those records have no outcome and stay registered.

        If a handler answers in spite of its cancellation, the answer is an outcome and is settled. A handler that
        ignores its cancellation is abandoned.
        """
        self._stopping = True
        for deadline in self._deadlines:
            deadline.revoke()
        if not self.workers:
            return
        _, refusing = await asyncio.wait(self.workers, timeout=self._stop_limit_s)
        if refusing:
            log.warning("%d handlers ignored cancellation; abandoning them", len(refusing))

    def _wake(self) -> None:
        if self._waking or self._stopping or not self._waiting:
            return
        if self._resting:
            self._waking = True
            self._resting.pop().set_result(None)
        else:
            self._waking = True
            worker = asyncio.create_task(self._work())
            worker.add_done_callback(self._worker_ended)
            self.workers.append(worker)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        deadline = self._watchdog.watch(task)
        self._deadlines.append(deadline)
        self._waking = False
        waiting, slots, run, monotonic = self._waiting, self._slots, self._attempts.run, self._monotonic
        while not self._stopping:
            if not waiting:
                if self._ended and self._reports < REPORTS_PER_TURN:
                    # What starts now is this worker's own, so no other one is woken.
                    waking, self._waking = self._waking, True
                    self._report()
                    self._waking = waking
                else:
                    await self._rest()
                continue
            if slots is not None:
                await slots.take()
                if not waiting:
                    slots.give()
                    continue
            entry = waiting.popleft()
            if waiting:
                self._wake()
            taken: Taken = entry.record
            lifetime = entry.lifetime
            expires_s = math.inf if lifetime is None else lifetime.expires_s
            started_s = deadline.started_s = monotonic()
            self._queue.observe(started_s - (entry.polled_s if lifetime is None else lifetime.registered_s))
            trace = None if self._traces is None else self._traces.begin(taken)
            deadline.record = taken
            result: Result | None = None
            try:
                result = await run(taken, started_s, expires_s, deadline, trace)
            except asyncio.CancelledError:
                if self._stopping or not deadline.revoked:
                    self._end(entry, None)
                    raise
            finally:
                deadline.started_s = math.inf
                deadline.record = None
                if trace is not None:
                    (trace.left if result is None else trace.leave)()
            if result is not None:
                self._seconds[result.__class__].observe(monotonic() - started_s)
                if result.__class__ is Discarded:
                    log.info("discarded: %s", one_line(result[0]), extra=log_fields(taken))
            self._end(entry, result)
            del entry, taken, result  # nothing may keep the record alive while the worker waits
            if deadline.revoked:
                deadline.revoked = False
                await deadline.take_back_cancellations()

    def _end(self, entry: Entry, result: Result | None) -> None:
        if not self._report_due:
            self._report_due = True
            self._loop.call_soon(self._turn)
        self._ended.append((entry, result))

    def _turn(self) -> None:
        self._report_due = False
        self._reports = 0
        if self._ended:
            self._report()

    def _report(self) -> None:
        self._reports += 1
        self._report_ended()

    async def _rest(self) -> None:
        rest = self._loop.create_future()
        self._resting.append(rest)
        await rest
        self._waking = False

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        if not worker.cancelled():
            error = worker.exception()
        elif self._stopping:
            error = None
        else:
            error = ConfigurationError(
                "other code cancelled a task of the processor's: a handler may cancel the tasks that it has begun, and "
                "no others, such as all of asyncio.all_tasks()"
            )
        if error is not None:
            self._fault.report(error)
