"""Attempts at records, and a dispatcher whose results are collected, on an event loop without a broker."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Result
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry
from processor.handlers.python import AsynchronousHandler
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from wait_registry.clock import Clock, SystemClock
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()
OWNER, OTHER = AssignedPartition("input", 0), AssignedPartition("input", 1)


def attempts_of(handler: Any, stats: Stats | None = None, clock: Clock = CLOCK, **settings: object) -> Attempts:
    """Return the attempts of an opened handler, or of a coroutine function; pauses are half of the longest."""
    opened = AsynchronousHandler(handler) if inspect.iscoroutinefunction(handler) else handler
    values = ProcessorSettings.model_validate(settings)
    decision = RetryDecision(values, time_limits(values), lambda: 0.5)
    return Attempts(opened, values.handler_timeout_s, decision, clock, stats or Stats())


class DispatchBench:
    """A dispatcher; what it settles and renews is collected."""

    def __init__(
        self,
        handler: Any,
        workers: int = 1,
        settle: Callable[[Entry, Result, float], None] | None = None,
        stop_limit_s: float = 10.0,
    ) -> None:
        self.fault = Fault()
        self.settled: list[tuple[Entry, Result]] = []
        self.renewed: list[Entry] = []
        self.watchdog = DeadlineWatchdog(CLOCK, 30.0)
        self.dispatcher = Dispatcher(
            workers,
            "group",
            attempts_of(handler, max_in_flight=workers),
            self.watchdog,
            CLOCK,
            self.fault,
            settle or self._settle,
            self.renewed.append,
            stop_limit_s,
        )

    @property
    def settled_offsets(self) -> list[int]:
        """The offsets of what is settled, in order."""
        return [one.offset for one, _ in self.settled]

    async def settle_all(self, count: int) -> None:
        """Give way until ``count`` records are done."""
        while len(self.settled) < count:
            assert self.fault.error is None
            await asyncio.sleep(0)
        assert {result for _, result in self.settled} == {None}

    def _settle(self, one: Entry, result: Result, elapsed_s: float) -> None:
        self.settled.append((one, result))
