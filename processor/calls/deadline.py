"""The limit of one attempt, watched for all workers by one timer.

``asyncio.timeout`` makes and cancels a timer for every call, which at 50,000 records per second costs more than the
rest of the dispatch. Here an attempt writes one number, and a timer checks the numbers of all workers a few times per
timeout.
"""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wait_registry.clock import Clock
from wait_registry.handler import Record
from wait_registry.logs import log_fields
from wait_registry.telemetry.tracing import RecordTrace

log = logging.getLogger(__name__)

# How long a handler may clean up after its cancellation before it counts as one that ignores it.
UNHEEDED_S = 5.0
LONGEST_TICK_S = 0.25
SHORTEST_TICK_S = 0.005
TICKS_PER_TIMEOUT = 20


def tick_s(timeout_s: float) -> float:
    """Return the pause between two checks of the deadlines, s: how late an attempt may be ended."""
    return min(LONGEST_TICK_S, max(SHORTEST_TICK_S, timeout_s / TICKS_PER_TIMEOUT))


@dataclass(slots=True, eq=False)
class Call:
    """One call of the handler: all attempts at a record in this process, and when the running one must be over.

    Calls one after another may share this object. Between them ``record`` and ``trace`` are None, and ``started_s``,
    when the record was first started, is ``math.inf``. ``expires_s`` is when its registration expires. ``at_s`` is the
    limit of the running attempt, ``math.inf`` while none is running, and ``unheeded_s`` when a cancelled attempt should
    have ended. ``passed`` says that the watchdog has cancelled the attempt, ``revoked`` that the call is to end without
    an outcome. The task's own count of cancellations says neither, since handlers change it, too.
    """

    task: asyncio.Task[Any]
    record: Record | None = None
    trace: RecordTrace | None = None
    started_s: float = math.inf
    expires_s: float = math.inf
    at_s: float = math.inf
    unheeded_s: float = math.inf
    passed: bool = False
    reported: bool = False
    revoked: bool = False

    def start(
        self, record: Record, now_s: float, expires_s: float = math.inf, trace: RecordTrace | None = None
    ) -> None:
        """Note the record that the task begins to work on, and what gets each attempt if the record is traced."""
        self.record = record
        self.started_s = now_s
        self.expires_s = expires_s
        self.trace = trace

    def end(self) -> None:
        """Note that the task has finished its record."""
        self.started_s = math.inf
        self.record = self.trace = None
        self.revoked = False

    def begin(self, at_s: float) -> None:
        """Begin an attempt, which must be over at this time."""
        self.at_s = at_s

    def pass_to(self, task: asyncio.Task[Any]) -> None:
        """Have another task be the one that is cancelled."""
        self.task = task

    def revoke(self) -> None:
        """Cancel the call: it has no outcome, unless it answers all the same."""
        self.revoked = True
        self.task.cancel()

    def clear(self) -> bool:
        """End the attempt; return whether the watchdog had cancelled it."""
        self.at_s = math.inf
        if not self.passed:
            return False
        self.passed = self.reported = False
        self.unheeded_s = math.inf
        return True

    async def take_back_cancellations(self) -> None:
        """Have the task count no cancellation, and throw none into what follows.

        Who cancels may be the watchdog or the handler. In Python 3.11 and 3.12, a task group whose child fails while
        the group is being left leaves one behind (python/cpython#116720).
        """
        while self.task.uncancel():
            pass
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


class DeadlineWatchdog:
    """Cancels attempts that are over their limit, at most a twentieth of it (and 0.25 s) late.

    Args:
        clock: for the monotonic clock.
        timeout_s: the limit of one attempt, s.

    Attributes:
        calls: those that are watched.
    """

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock = clock
        self.timeout_s = timeout_s
        self.tick_s = tick_s(timeout_s)
        self.calls: set[Call] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._expected_s = 0.0
        self._forgave = False

    def watch(self, task: asyncio.Task[Any]) -> Call:
        """Return the calls of a task, one after another, whose limits are watched."""
        call = Call(task)
        self.calls.add(call)
        return call

    def forget(self, call: Call) -> None:
        """Stop watching a task that has ended."""
        self.calls.discard(call)

    def oldest_s(self) -> float:
        """Return the age of the oldest record in flight since its start, s; 0 if there is none; from any thread."""
        started_s = min((call.started_s for call in list(self.calls)), default=math.inf)
        return 0.0 if started_s == math.inf else max(0.0, self._clock.monotonic() - started_s)

    def older_than(self, age_s: float) -> int:
        """Return how many records in flight were started longer ago than this; from any thread."""
        before_s = self._clock.monotonic() - age_s
        return sum(call.started_s < before_s for call in list(self.calls))

    def blocked(self) -> int:
        """Return how many attempts ignore their cancellation, each in a worker slot; from any thread."""
        now_s = self._clock.monotonic()
        return sum(call.unheeded_s <= now_s for call in list(self.calls))

    def late_s(self) -> float:
        """Return for how long the event loop has been blocked, s; from any thread."""
        return 0.0 if self._timer is None else max(0.0, self._clock.monotonic() - self._expected_s)

    def start(self) -> None:
        """Start to watch, on the running event loop."""
        self._expected_s = self._clock.monotonic() + self.tick_s
        self._timer = asyncio.get_running_loop().call_later(self.tick_s, self.look)

    def stop(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self) -> None:
        """Cancel calls that exceed their limit, and schedule the next look."""
        now_s = self._clock.monotonic()
        # After a pause of the whole loop (a rebalance, a blocking handler) answers may lie unread in the sockets: the
        # handlers get one more tick to read them, and no more than one, since a loop under load is late every time.
        self._forgave = not self._forgave and now_s - self._expected_s >= self.tick_s
        if not self._forgave:
            self.cancel_overdue(now_s)
        self.start()

    def cancel_overdue(self, now_s: float) -> None:
        """Cancel calls whose limit has passed, and report those that don't end."""
        for call in self.calls:
            if call.at_s <= now_s:
                call.at_s = math.inf
                call.passed = True
                call.unheeded_s = now_s + UNHEEDED_S
                call.task.cancel()
            elif call.unheeded_s <= now_s and not call.reported:
                call.reported = True
                _report(call.record, self.timeout_s)


def _report(record: Record | None, timeout_s: float) -> None:
    log.warning(
        "a call continues after its limit of %g s and keeps its worker slot. A coroutine must let "
        "asyncio.CancelledError through, a plain function must return",
        timeout_s,
        extra=None if record is None else log_fields(record),
    )
