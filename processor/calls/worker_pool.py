"""Calls handlers: a worker for each record, as many at once as there are worker slots."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from processor.calls.attempts import Attempts
from processor.calls.deadline import Call, DeadlineWatchdog
from processor.calls.traces import Traces
from processor.inbox import Inbox
from processor.intake.delivery import Delivery
from processor.protocol.events import CallsEnded
from processor.protocol.record import Entry
from processor.protocol.results import Discarded, Done, Failed, Result
from wait_registry.clock import Clock
from wait_registry.display import one_line
from wait_registry.errors import ConfigurationError
from wait_registry.logs import log_fields

log = logging.getLogger(__name__)

STOP_LIMIT_S = 5.0
REPORTS_PER_TURN = 8
# What metrics call them.
RESULTS: Final[Mapping[type[Any], str]] = {Done: "done", Discarded: "discarded", Failed: "failed"}


@dataclass(eq=False)
class WorkerPool:
    """Runs the calls that the engine starts.

    Each record gets a worker, a task that ends with it: what one call leaves behind (a timer that cancels its task, a
    context variable) must not reach the call of another record. A worker takes its record when it begins, and after it
    has acquired a slot if the handler has any.

    Args:
        attempts: calls the handler.
        watchdog: ends attempts that are over their limit.
        inbox: gets the calls that have ended, whose effects may start others, and errors that end the process.
        stop_limit_s: how long `stop` waits for handlers that it has cancelled, s.
        traces: begins the trace of each record that starts, if tracing is on.
    """

    attempts: Attempts
    watchdog: DeadlineWatchdog
    clock: Clock
    inbox: Inbox
    stop_limit_s: float = STOP_LIMIT_S
    traces: Traces | None = None

    def __post_init__(self) -> None:
        self.slots = self.attempts.slots
        self._fresh_context = self.attempts.contexts.fresh
        self._own_context = self._fresh_context()  # reports to the engine, whose call it was
        self._monotonic = self.clock.monotonic
        self._queue = self.inbox.stats.queue
        self._seconds = {kind: self.inbox.stats.seconds[name] for kind, name in RESULTS.items()}
        self._waiting: deque[Entry] = deque()
        self._ended: list[tuple[Entry, Result | None]] = []
        self._loop = asyncio.get_running_loop()
        self._report_due = False
        self._reports = 0  # in this turn of the event loop
        self._free_calls: list[Call] = []
        self.workers: set[asyncio.Task[None]] = set()
        self._new = 0  # workers that haven't taken their record
        # The user's task factory may run a task when it is made, and the engine is called by nothing that it calls.
        self._starting = False
        self._stopping = False

    @property
    def running(self) -> int:
        """How many calls run."""
        return sum(call.record is not None for call in list(self.watchdog.calls))

    def start(self, entries: Iterable[Entry]) -> None:
        """Call the handler for these records."""
        self._waiting.extend(entries)
        self._starting = True
        while self._new < len(self._waiting) and not self._stopping:
            self._new += 1
            worker = self._loop.create_task(self._work(), name="call", context=self._fresh_context())
            if not worker.done():
                self.workers.add(worker)
        self._starting = False

    def cancel(self, entries: Iterable[Entry]) -> None:
        """Cancel the calls of these records; each ends without an outcome."""
        running = {call.record: call for call in self.watchdog.calls if call.record is not None}
        for entry in entries:
            if (call := running.get(entry.record)) is not None:
                if not call.revoked:
                    call.revoke()
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
        for call in self.watchdog.calls:
            call.revoke()
        if not self.workers:
            return
        _, refusing = await asyncio.wait(self.workers, timeout=self.stop_limit_s)
        if refusing:
            log.warning("%d handlers ignored cancellation; abandoning them", len(refusing))

    def _watch(self) -> Call:
        task = asyncio.current_task(self._loop)
        assert task is not None
        if not self._free_calls:
            return self.watchdog.watch(task)
        call = self._free_calls.pop()
        call.pass_to(task)
        return call

    async def _work(self) -> None:
        """Work on one record."""
        call = self._watch()
        try:
            if self.slots is not None:
                await self.slots.acquire()
            self._new -= 1
            if self._waiting and not self._stopping:
                await self._call(self._waiting.popleft(), call)
                if not self._waiting and self._may_report():
                    self._own_context.run(self._report)
            elif self.slots is not None:
                self.slots.release()
        except BaseException as error:  # noqa: BLE001 - the loop raises it
            self._fail(error)
        self.workers.discard(call.task)
        self._free_calls.append(call)

    async def _call(self, entry: Entry, call: Call) -> None:
        record: Delivery = entry.record
        lifetime = entry.lifetime
        started_s = self._monotonic()
        trace = None if self.traces is None else self.traces.begin(record)
        call.start(record, started_s, math.inf if lifetime is None else lifetime.expires_s, trace)
        self._queue.observe(started_s - (entry.polled_s if lifetime is None else lifetime.registered_s))
        result: Result | None = None
        try:
            result = await self.attempts.run(record, call, started_s)
        except asyncio.CancelledError:
            if self._stopping or not call.revoked:
                self._end(entry, None)
                raise
        finally:
            call.end()
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
        self.inbox.deliver(CallsEnded(ended))

    def _fail(self, error: BaseException) -> None:
        """Have what came out of a worker end the process."""
        if not isinstance(error, asyncio.CancelledError):
            self.inbox.fault.report(error)
        elif not self._stopping:
            self.inbox.fault.report(
                ConfigurationError(
                    "other code cancelled a task of the processor's: a handler may cancel the tasks that it has begun, "
                    "and no others, such as all of asyncio.all_tasks()"
                )
            )
