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
from typing import Any

from wait_registry.clock import Clock
from wait_registry.handler import Record
from wait_registry.logs import record_fields

log = logging.getLogger(__name__)

# How long a handler may clean up after its cancellation before it counts as one that ignores it.
UNHEEDED_S = 5.0
LONGEST_TICK_S = 0.25
SHORTEST_TICK_S = 0.005
TICKS_PER_TIMEOUT = 20


def tick_s(timeout_s: float) -> float:
    """Return the pause between two checks of the deadlines, s: how late an attempt may be ended."""
    return min(LONGEST_TICK_S, max(SHORTEST_TICK_S, timeout_s / TICKS_PER_TIMEOUT))


class Deadline:
    """When the running attempt of one worker's task must be over; ``math.inf`` while none is running.

    ``started_s`` is when the task's record was first started (``math.inf`` between records), and ``record`` is that
    record; only telemetry and logs read them. ``unheeded_s`` is when a cancelled attempt should have ended. ``passed``
    says that the watchdog has cancelled the attempt, ``revoked`` that the call is to end without an outcome. The task's
    own count of cancellations says neither, since handlers change it, too.
    """

    __slots__ = ("at_s", "passed", "record", "reported", "revoked", "started_s", "task", "unheeded_s")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.at_s = math.inf
        self.started_s = math.inf
        self.record: Record | None = None
        self.passed = False
        self.revoked = False
        self.unheeded_s = math.inf
        self.reported = False

    def start(self, record: Record, now_s: float) -> None:
        """Note the record that the task begins to work on."""
        self.record = record
        self.started_s = now_s

    def end(self) -> None:
        """Note that the task has finished its record."""
        self.started_s = math.inf
        self.record = None

    def begin(self, at_s: float) -> None:
        """Begin an attempt, which must be over at this time."""
        self.at_s = at_s

    def pass_to(self, task: asyncio.Task[Any]) -> None:
        """Have another task be the one that is cancelled."""
        self.task = task

    def forgive(self) -> bool:
        """Revoke the call no more; return whether it was revoked."""
        revoked, self.revoked = self.revoked, False
        return revoked

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
    """

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock = clock
        self.timeout_s = timeout_s
        self.tick_s = tick_s(timeout_s)
        self._deadlines: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._expected_s = 0.0
        self._forgave = False

    def watch(self, task: asyncio.Task[Any]) -> Deadline:
        """Return the deadline of a worker's task."""
        deadline = Deadline(task)
        self._deadlines.add(deadline)
        return deadline

    def forget(self, deadline: Deadline) -> None:
        """Stop watching a task that has ended."""
        self._deadlines.discard(deadline)

    def oldest_s(self) -> float:
        """Return the age of the oldest record in flight since its start, s; 0 if there is none; from any thread."""
        started_s = min((deadline.started_s for deadline in list(self._deadlines)), default=math.inf)
        return 0.0 if started_s == math.inf else max(0.0, self._clock.monotonic() - started_s)

    def older_than(self, age_s: float) -> int:
        """Return how many records in flight were started longer ago than this; from any thread."""
        before_s = self._clock.monotonic() - age_s
        return sum(deadline.started_s < before_s for deadline in list(self._deadlines))

    def blocked(self) -> int:
        """Return how many attempts ignore their cancellation, each in a worker slot; from any thread."""
        now_s = self._clock.monotonic()
        return sum(deadline.unheeded_s <= now_s for deadline in list(self._deadlines))

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
        for deadline in self._deadlines:
            if deadline.at_s <= now_s:
                deadline.at_s = math.inf
                deadline.passed = True
                deadline.unheeded_s = now_s + UNHEEDED_S
                deadline.task.cancel()
            elif deadline.unheeded_s <= now_s and not deadline.reported:
                deadline.reported = True
                _report(deadline.record, self.timeout_s)


def _report(record: Record | None, timeout_s: float) -> None:
    log.warning(
        "a call continues after its limit of %g s and keeps its worker slot. A coroutine must let "
        "asyncio.CancelledError through, a plain function must return",
        timeout_s,
        extra=None if record is None else log_fields(record),
    )


def log_fields(record: Record) -> dict[str, object]:
    """Return the log fields that name a record."""
    return record_fields(
        wait_id=record.wait_id,
        idempotency_key=record.idempotency_key,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
    )
