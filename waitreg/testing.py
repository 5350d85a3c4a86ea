"""Tests of handlers without Kafka: say what a processor would do with a record.

The processor's own code loads, calls and times the handler, and decides about the record. Pauses between attempts
take no time.

    from waitreg.testing import Discarded, outcome_of, record

    def test_a_cancelled_order_is_discarded():
        assert outcome_of("orders:handle", record({"id": 1, "status": "cancelled"})) == Discarded("cancelled")

In a test that is a coroutine, or for several records with one handler, use `HandlerTester`:

    from waitreg.testing import DeadLetter, HandlerTester, record

    async with HandlerTester(handle, max_attempts=2, handler_timeout_s=0.5) as tester:
        outcome = await tester.outcome_of(record(b"..."))
        assert isinstance(outcome, DeadLetter) and outcome.reason == "failed"
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic_core import to_json

from processor.calls.attempts import Attempts
from processor.calls.deadline import DeadlineWatchdog
from processor.calls.retry_decision import RetryDecision, time_limits
from processor.handlers.loading import handler_from, load_handler
from processor.handlers.open_handler import OpenHandler
from processor.health.stats import Stats
from processor.protocol.results import DeadLetter, Discarded, Done, Failed, Outcome, Result, Retry, RetryDelays
from wait_registry.clock import SystemClock
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record
from wait_registry.records.delays import parse_delay
from wait_registry.records.wait_id import wait_id
from wait_registry.settings.processor import ProcessorSettings

__all__ = ["DeadLetter", "Discarded", "Done", "HandlerTester", "Outcome", "Retry", "outcome_of", "record"]

_CLUSTER: Final = "cluster"


def record(
    value: object = None,
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    topic: str = "input",
    partition: int = 0,
    offset: int = 0,
    timestamp: int | None = None,
    delivery: int = 1,
    group: str = "group",
) -> Record:
    """Make a record as a handler gets it.

    Args:
        value: bytes, text (in UTF-8) or None as they are; anything else, such as a dict or a pydantic model, in JSON.
        key, headers, topic, partition, offset, delivery, group: as in `Record`.
        timestamp: ms since the epoch; now by default.
    """
    content = value if value is None or isinstance(value, bytes) else _encoded(value)
    time_ms = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    first = wait_id(_CLUSTER, (topic, partition, offset), group, time_ms)
    # A later delivery has a place and a wait ID of its own, and the idempotency key of the first one.
    this = first if delivery == 1 else wait_id(_CLUSTER, (topic, partition, offset + delivery - 1), group, time_ms)
    return Record(topic, partition, offset, time_ms, key, content, tuple(headers), delivery, this, group, None, first)


def _encoded(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else to_json(value)


def outcome_of(
    handler: str | Callable[..., Any] | type[Any], tested: Record, came_from: str | None = None, **settings: object
) -> Outcome:
    """Return what a processor would do with a record; arguments and result are those of `HandlerTester`."""

    async def run() -> Outcome:
        async with HandlerTester(handler, **settings) as tester:
            return await tester.outcome_of(tested, came_from)

    return asyncio.run(run())


class HandlerTester:
    """Calls a handler as a processor does. It is an async context manager, which opens and closes the handler.

    Args:
        handler: the text of ``processor.handler``, or the function or class itself.
        settings: those of the section ``processor`` that differ from their defaults, such as ``max_attempts=1`` or
            ``retry={"delays": ["10s", "1m"]}``; ``routes`` isn't used. Calls take their real time, so a test of a
            timeout needs a short ``handler_timeout_s``.

    Raises:
        ConfigurationError: a processor with this handler would refuse to start.
    """

    def __init__(self, handler: str | Callable[..., Any] | type[Any], **settings: object) -> None:
        self._settings = ProcessorSettings.model_validate(
            {"handler": handler if isinstance(handler, str) else "", **settings}
        )
        if isinstance(handler, str):
            self._handler: OpenHandler = load_handler(self._settings)
        else:
            name = f"{handler.__module__}:{getattr(handler, '__qualname__', type(handler).__qualname__)}"
            self._handler = handler_from(name, handler, self._settings)
        self._clock = SystemClock()
        self._watchdog = DeadlineWatchdog(self._clock, self._settings.handler_timeout_s)
        self._delays = RetryDelays(self._settings.retry.delays_s)
        self._attempts: Attempts | None = None

    async def __aenter__(self) -> HandlerTester:
        settings = self._settings
        await self._handler.open()
        decision = RetryDecision(settings, time_limits(settings), random.random)
        self._attempts = Attempts(self._handler, settings.handler_timeout_s, decision, self._clock, Stats(), _no_pause)
        self._watchdog.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watchdog.stop()
        await self._handler.close()

    async def outcome_of(self, tested: Record, came_from: str | None = None) -> Outcome:
        """Handle one record, with all attempts; any number of calls may run at the same time.

        Args:
            tested: the record.
            came_from: the delay of the retry topic that the record comes from, as in ``retry.delays``; None if it comes
                from an input topic.

        Returns:
            `Done`, `Discarded`, `Retry` (with the delay of the retry topic, s) or `DeadLetter` (with the reason
            "failed" or "malformed").
        """
        attempts = self._attempts
        if attempts is None:
            raise ConfigurationError(
                "the HandlerTester was used before it was entered; write: async with HandlerTester(...)"
            )
        if attempts.slots is not None:
            await attempts.slots.acquire()

        async def run() -> Result:
            started_s = self._clock.monotonic()
            call.start(tested, started_s, started_s + self._settings.ttl_s)
            return await attempts.run(tested, call, started_s)

        task = asyncio.create_task(run())
        call = self._watchdog.watch(task)
        try:
            await asyncio.wait([task])
            result = task.result()
        finally:
            call.revoke()
            self._watchdog.forget(call)
        if isinstance(result, Failed):
            return self._delays.after(result, 0 if came_from is None else parse_delay(came_from))
        return result


async def _no_pause(pause_s: float) -> None:
    await asyncio.sleep(0)
