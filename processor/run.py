"""Runs the loop until the process is stopped or its work is done, and drains it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from threading import Event

from processor.fault import Fault
from processor.intake.membership import Membership
from processor.intake.replay_progress import ReplayProgress
from processor.intake.stop_at_ends import StopAtEnds
from processor.loop import Loop
from processor.protocol.events import Draining
from wait_registry.clock import Clock
from wait_registry.errors import PermanentError

log = logging.getLogger(__name__)

DRAIN_STEP_S = 0.005


class Run:
    """One run of the loop, from the first poll to the last outcome.

    Args:
        loop: is run.
        membership: says whether the group has assigned partitions.
        ends: says whether everything was read that is to be handled; None if there is no end.
        drain_timeout_s: ``processor.drain_timeout_s``: how long all that a stop waits for may take, s.

    Attributes:
        draining: whether the process is stopping.
        leaving: done when the group is left; None before.
    """

    def __init__(
        self,
        loop: Loop,
        membership: Membership,
        ends: StopAtEnds | ReplayProgress | None,
        drain_timeout_s: float,
        clock: Clock,
        fault: Fault,
    ) -> None:
        self._loop = loop
        self._membership = membership
        self._ends = ends
        self._drain_timeout_s = drain_timeout_s
        self._monotonic = clock.monotonic
        self._fault = fault
        self._end_s: float | None = None
        self.draining = False
        self.leaving: asyncio.Future[None] | None = None

    async def until(self, stop: Event) -> None:
        """Run until stopped; then release the partitions, let running handlers finish, and write their tombstones."""
        self._loop.source.start()
        try:
            while not stop.is_set() and not self._is_done():
                await self._loop.run_once()
                self._require_progress()
            await self._drain()
        except BaseException:
            self.draining = True
            (failure,) = await asyncio.gather(self._leave(), return_exceptions=True)
            if failure is not None:
                log.warning("leaving the group failed", exc_info=failure)
            await self._loop.calls.stop()
            raise

    def left_s(self) -> float:
        """Return how much of the drain's limit is left, s; it starts with the first call."""
        now_s = self._monotonic()
        if self._end_s is None:
            self._end_s = now_s + self._drain_timeout_s
        return self._end_s - now_s

    def _leave(self) -> asyncio.Future[None]:
        """Leave the group, once."""
        if self.leaving is None:
            self.leaving = asyncio.ensure_future(self._loop.source.close(self.left_s(), self._loop.give_up))
        return self.leaving

    def _is_done(self) -> bool:
        return (
            self._ends is not None
            and self._membership.joined
            and not self._loop.engine.records
            and not self._loop.writers.outbox.unacknowledged
            and self._ends.reached(self._loop.source.assigned)
        )

    def _require_progress(self) -> None:
        """Raise PermanentError if this process is to end, and what it waits for needs an operator."""
        refused = self._loop.engine.refused
        if self._ends is not None and self._loop.engine.waits_for_operator():
            places = ", ".join(sorted(f"{entry.partition!r} offset {entry.offset}" for entry in refused))
            raise PermanentError(
                f"the dead letters of {len(refused)} records are too large for their topic: {places}. Raise its "
                "max.message.bytes, or pass these records by, and start again"
            )

    async def _drain(self) -> None:
        """Handle what is registered, release the partitions, and finish the records, all within one limit."""
        self.draining = True
        self._loop.step(Draining())
        loop, records, outbox = self._loop, self._loop.engine.records, self._loop.writers.outbox
        flush_s = loop.writers.flush_timeout_s
        # Part of the limit is for leaving, and for the calls that run then.
        settled_s = self._monotonic() + self.left_s() / 2
        while records.unsettled() and self._monotonic() < settled_s:
            await loop.run_once()
        registered = await self._until(lambda: not records.in_flight(), min(flush_s, self.left_s()))
        # A flush that ran out of time isn't repeated.
        loop.limit_finish(max(0.0, self.left_s()) if registered else 0.0)
        leaving = self._leave()
        await self._until(leaving.done, math.inf)
        await leaving
        await self._until(lambda: not records, self.left_s())
        left = len(records)
        await loop.calls.stop()
        await self._until(lambda: not outbox.unacknowledged, flush_s)
        self._fault.raise_if_any()
        self._log_rest(left, outbox.unacknowledged)

    def _log_rest(self, records: int, unacknowledged: int) -> None:
        if records:
            log.warning(
                "the drain exceeded its limit of %g s; %d records stay registered until they expire",
                self._drain_timeout_s,
                records,
            )
        if unacknowledged:
            log.warning("the broker hasn't acknowledged %d tombstones or dead letters yet", unacknowledged)
        if not records and not unacknowledged:
            log.info("drained: no record is left")

    async def _until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Continue without polling until the condition holds or the time is over; return the condition."""
        end_s = self._monotonic() + timeout_s
        while not condition() and self._monotonic() < end_s:
            self._loop.run_without_polling()
            await asyncio.sleep(DRAIN_STEP_S)
        return condition()
