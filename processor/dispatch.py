"""At most N workers on the queue of registered records."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Result
from processor.deadline import DeadlineWatchdog
from processor.ending import Fault
from processor.entry import Entry, EntryState
from processor.handlers.descriptors import ShortageError
from processor.traces import Traces
from wait_registry.clock import Clock

log = logging.getLogger(__name__)

STOP_LIMIT_S = 5.0


class Dispatcher:
    """Starts handlers in the order of registration, renewed records first, N at once.

    Workers are started when they are first needed, and reused. At most one wake-up is pending, and a worker that wakes
    wakes the next one while records wait.

    Args:
        max_in_flight: workers at most (N).
        group: the consumer group, for the handler's record.
        attempts: calls the handler.
        watchdog: ends attempts that are over their limit.
        settle: called with a record, its result, and the seconds since its start.
        renew: called with a record that has too little time left to start.
        stop_limit_s: how long `stop` waits for handlers that it has cancelled, s.
        traces: begins the trace of each record that starts, if tracing is on.
    """

    def __init__(
        self,
        max_in_flight: int,
        group: str,
        attempts: Attempts,
        watchdog: DeadlineWatchdog,
        clock: Clock,
        fault: Fault,
        settle: Callable[[Entry, Result, float], None],
        renew: Callable[[Entry], None],
        stop_limit_s: float = STOP_LIMIT_S,
        traces: Traces | None = None,
    ) -> None:
        self._max_in_flight = max_in_flight
        self._group = group
        self._attempts = attempts
        self._slots = attempts.slots
        self._queued = attempts.stats.queue.observe
        self._watchdog = watchdog
        self._monotonic = clock.monotonic
        self._fault = fault
        self._settle = settle
        self._renew = renew
        self._stop_limit_s = stop_limit_s
        self._traces = traces
        self._ready: deque[Entry] = deque()
        self._renewed: deque[Entry] = deque()
        # No waiting record is overdue before this time, on the monotonic clock.
        self._overdue_from_s = math.inf
        self._resting: list[asyncio.Future[None]] = []
        self.workers: list[asyncio.Task[None]] = []
        self._waking = False
        self._stopping = False
        self.running = 0

    @property
    def waiting(self) -> int:
        """Records that wait for a worker."""
        return len(self._renewed) + len(self._ready)

    def add(self, entries: Iterable[Entry]) -> None:
        """Append registered records and wake a worker."""
        state, ready, from_s = EntryState.READY, self._ready, self._overdue_from_s
        for entry in entries:
            entry.state = state
            ready.append(entry)
            if entry.lifetime.start_by_s < from_s:
                from_s = entry.lifetime.start_by_s
        self._overdue_from_s = from_s
        self._wake()

    def add_first(self, entry: Entry) -> None:
        """Put a renewed record before all others."""
        entry.state = EntryState.READY
        self._renewed.append(entry)
        self._overdue_from_s = min(self._overdue_from_s, entry.lifetime.start_by_s)
        self._wake()

    def renew_overdue(self) -> None:
        """Renew waiting records that can't start in time, since all workers may be busy."""
        now_s = self._monotonic()
        if self._overdue_from_s >= now_s:
            return
        # Check all of them: renewed records, and records of a long warm-up, aren't in the order of their time.
        overdue = self._remove(lambda entry: entry.lifetime.start_by_s < now_s)
        waiting = (*self._renewed, *self._ready)
        self._overdue_from_s = min((entry.lifetime.start_by_s for entry in waiting), default=math.inf)
        for entry in overdue:
            self._renew(entry)

    def offsets_of(self, owner: AssignedPartition) -> list[int]:
        """Return the offsets of a partition's records that wait for a worker."""
        return [entry.offset for entry in (*self._renewed, *self._ready) if entry.owner is owner]

    def drop(self, owner: AssignedPartition, offset: int) -> list[Entry]:
        """Forget and return a partition's waiting records at or above ``offset``."""
        return self._remove(lambda entry: entry.owner is owner and entry.offset >= offset)

    def _remove(self, which: Callable[[Entry], bool]) -> list[Entry]:
        removed: list[Entry] = []
        for queue in (self._renewed, self._ready):
            found = [entry for entry in queue if which(entry)]
            if found:
                kept = [entry for entry in queue if not which(entry)]
                queue.clear()
                queue.extend(kept)
                removed += found
        return removed

    async def stop(self) -> None:
        """Start nothing more and cancel what runs: those records have no outcome and stay in the registry.

        If a handler answers in spite of its cancellation, the answer is an outcome and is settled. A handler that
        ignores its cancellation is abandoned.
        """
        self._stopping = True
        for worker in self.workers:
            worker.cancel()
        if not self.workers:
            return
        _, refusing = await asyncio.wait(self.workers, timeout=self._stop_limit_s)
        if refusing:
            log.warning("%d handlers ignored cancellation; abandoning them", len(refusing))

    def _wake(self) -> None:
        if self._waking or self._stopping or not (self._renewed or self._ready):
            return
        if self._resting:
            self._waking = True
            self._resting.pop().set_result(None)
        elif len(self.workers) < self._max_in_flight:
            self._waking = True
            worker = asyncio.create_task(self._work())
            worker.add_done_callback(self._ended)
            self.workers.append(worker)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        deadline = self._watchdog.watch(task)
        attempts, traces, queued, started = self._attempts, self._traces, self._queued, EntryState.STARTED
        self._waking = False
        renewed, ready, slots = self._renewed, self._ready, self._slots
        monotonic = self._monotonic
        while not self._stopping:
            # If a record waits and no slot is needed, there is nothing to wait for: one coroutine less per record.
            entry = await self._next() if slots is not None or not (renewed or ready) else self._first()
            if entry is None:
                continue
            entry.state = started
            self.running += 1
            started_s = deadline.started_s = monotonic()
            queued(started_s - entry.lifetime.registered_s)
            trace = None if traces is None else traces.begin(entry)
            try:
                result = await attempts.run(entry.record(self._group), entry.lifetime.expires_s, deadline, trace)
            except (asyncio.CancelledError, ShortageError):
                if trace is not None:
                    trace.left()
                raise
            finally:
                self.running -= 1
                deadline.started_s = math.inf
                deadline.record = None
            self._settle(entry, result, monotonic() - started_s)
            if trace is not None:
                trace.leave()
            del entry, result, trace  # nothing may keep the record alive while the worker waits

    async def _next(self) -> Entry:
        """Wait for a record, and for a slot if the handler has slots; the caller owns both then."""
        renewed, ready, slots = self._renewed, self._ready, self._slots
        while True:
            if not (renewed or ready):
                await self._rest()
                continue
            if slots is not None:
                await slots.take()
                if not (renewed or ready):
                    slots.give()
                    continue
            entry = self._first()
            if entry is not None:
                return entry
            if slots is not None:
                slots.give()

    def _first(self) -> Entry | None:
        """Take the next record; None if it must be registered again before it can start."""
        entry = (self._renewed or self._ready).popleft()
        if entry.lifetime.start_by_s >= self._monotonic():
            self._wake()
            return entry
        self._renew(entry)
        return None

    async def _rest(self) -> None:
        rest = asyncio.get_running_loop().create_future()
        self._resting.append(rest)
        await rest
        self._waking = False

    def _ended(self, worker: asyncio.Task[None]) -> None:
        error = None if worker.cancelled() else worker.exception()
        if error is not None:
            self._fault.report(error)
