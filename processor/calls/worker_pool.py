"""Calls handlers: as many workers as there are worker slots. Each is a task, reused unless it runs the user's code."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from processor.calls.attempts import Attempts
from processor.calls.deadline import Deadline, DeadlineWatchdog, log_fields
from processor.calls.traces import Traces
from processor.inbox import Inbox
from processor.intake.delivery import Delivery
from processor.protocol.events import CallsEnded
from processor.protocol.record import Entry
from processor.protocol.results import Discarded, Done, Failed, Result
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

    The user's coroutines get a worker for each record, which ends with it: what one call leaves behind (a timer that
    cancels its task, a context variable) must not reach the call of another record.

    Args:
        attempts: calls the handler.
        watchdog: ends attempts that are over their limit.
        inbox: gets the calls that have ended, whose effects may start others, and errors that end the process.
        stop_limit_s: how long `stop` waits for handlers that it has cancelled, s.
        traces: begins the trace of each record that starts, if tracing is on.
    """

    def __init__(
        self,
        attempts: Attempts,
        watchdog: DeadlineWatchdog,
        clock: Clock,
        inbox: Inbox,
        stop_limit_s: float = STOP_LIMIT_S,
        traces: Traces | None = None,
    ) -> None:
        self._attempts = attempts
        self.slots = attempts.slots
        self._fresh_context = attempts.contexts.fresh
        self._own_context = self._fresh_context()  # reports to the engine, whose call it was
        self._watchdog = watchdog
        self._monotonic = clock.monotonic
        self._inbox = inbox
        self._queue = inbox.stats.queue
        self._seconds = {kind: inbox.stats.seconds[name] for kind, name in RESULTS.items()}
        self._stop_limit_s = stop_limit_s
        self._traces = traces
        self._waiting: deque[Entry] = deque()
        self._ended: list[tuple[Entry, Result | None]] = []
        self._loop = asyncio.get_running_loop()
        self._report_due = False
        self._reports = 0  # in this turn of the event loop
        self._deadlines: list[Deadline] = []
        self._resting: list[asyncio.Future[None]] = []
        self._free_deadlines: list[Deadline] = []
        self.workers: set[asyncio.Task[None]] = set()
        self._waking = False
        self._new = 0  # workers for one record that haven't taken it
        # The user's task factory may run a task when it is made, and the engine is called by nothing that it calls.
        self._starting = False
        self._stopping = False

    @property
    def running(self) -> int:
        """How many calls run."""
        return sum(deadline.record is not None for deadline in list(self._deadlines))

    def start(self, entries: Iterable[Entry]) -> None:
        """Call the handler for these records."""
        self._waiting.extend(entries)
        self._starting = True
        if not self._attempts.in_own_tasks:
            self._wake()
        while self._attempts.in_own_tasks and self._new < len(self._waiting) and not self._stopping:
            self._new += 1
            worker = self._loop.create_task(self._work_once(), name="call", context=self._fresh_context())
            if not worker.done():
                self.workers.add(worker)
        self._starting = False

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
        return 0 if self.slots is None else self.slots.blocked

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
            worker = self._loop.create_task(self._work(), context=self._fresh_context())
            worker.add_done_callback(self._worker_ended)
            self.workers.add(worker)

    def _watch(self) -> Deadline:
        task = asyncio.current_task(self._loop)
        assert task is not None
        if self._free_deadlines:
            deadline = self._free_deadlines.pop()
            deadline.pass_to(task)
        else:
            deadline = self._watchdog.watch(task)
            self._deadlines.append(deadline)
        return deadline

    async def _work_once(self) -> None:
        """Work on one record."""
        self._new -= 1
        deadline = self._watch()
        try:
            if self._waiting and not self._stopping:
                await self._call(self._waiting.popleft(), deadline)
                if not self._waiting and self._may_report():
                    self._own_context.run(self._report)
        except BaseException as error:  # noqa: BLE001 - as for workers that are reused, whose tasks hold it
            self._fail(error)
        deadline.forgive()
        self.workers.discard(deadline.task)
        self._free_deadlines.append(deadline)

    async def _work(self) -> None:
        """Work on records until the pool stops."""
        deadline = self._watch()
        self._waking = False
        waiting, slots = self._waiting, self.slots
        while not self._stopping:
            if not waiting:
                if self._may_report():
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
            await self._call(entry, deadline)
            del entry  # nothing may keep the record alive while the worker waits
            if deadline.forgive():
                await deadline.take_back_cancellations()

    async def _call(self, entry: Entry, deadline: Deadline) -> None:
        record: Delivery = entry.record
        lifetime = entry.lifetime
        expires_s = math.inf if lifetime is None else lifetime.expires_s
        started_s = self._monotonic()
        deadline.start(record, started_s)
        self._queue.observe(started_s - (entry.polled_s if lifetime is None else lifetime.registered_s))
        trace = None if self._traces is None else self._traces.begin(record)
        result: Result | None = None
        try:
            result = await self._attempts.run(record, started_s, expires_s, deadline, trace)
        except asyncio.CancelledError:
            if self._stopping or not deadline.revoked:
                self._end(entry, None)
                raise
        finally:
            deadline.end()
            if trace is not None:
                (trace.left if result is None else trace.leave)()
        if result is not None:
            self._seconds[result.__class__].observe(self._monotonic() - started_s)
            if result.__class__ is Discarded:
                log.info("discarded: %s", one_line(result[0]), extra=log_fields(record))
        self._end(entry, result)

    def _end(self, entry: Entry, result: Result | None) -> None:
        if not self._report_due:
            self._report_due = True
            self._loop.call_soon(self._turn, context=self._own_context)
        self._ended.append((entry, result))

    def _turn(self) -> None:
        self._report_due = False
        self._reports = 0
        if self._ended:
            self._report()

    def _may_report(self) -> bool:
        return bool(self._ended) and self._reports < REPORTS_PER_TURN and not self._starting

    def _report(self) -> None:
        self._reports += 1
        ended, self._ended = self._ended, []
        self._inbox.deliver(CallsEnded(ended))

    async def _rest(self) -> None:
        rest = self._loop.create_future()
        self._resting.append(rest)
        await rest
        self._waking = False

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if worker.cancelled() else worker.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Have what came out of a worker end the process."""
        if not isinstance(error, asyncio.CancelledError):
            self._inbox.fault.report(error)
        elif not self._stopping:
            self._inbox.fault.report(
                ConfigurationError(
                    "other code cancelled a task of the processor's: a handler may cancel the tasks that it has begun, "
                    "and no others, such as all of asyncio.all_tasks()"
                )
            )
