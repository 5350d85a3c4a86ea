"""A dead letter's log line has the error's message; those of handlers can be switched off."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.handler import HandlerResult, PermanentError, Record

Handler = Callable[[Record], Awaitable[HandlerResult]]


async def _answers_true(record: Record) -> HandlerResult:
    return True  # type: ignore[return-value]


async def _refuses_with_the_value(record: Record) -> HandlerResult:
    raise PermanentError(f"no such order: {record.value!r}")


async def _never_ends(record: Record) -> HandlerResult:
    await asyncio.Event().wait()
    return None


async def _says_much(record: Record) -> HandlerResult:
    raise PermanentError("no\n" * 1000)


async def _says_what_a_terminal_obeys(record: Record) -> HandlerResult:
    raise PermanentError("\x1b[2J")


@pytest.mark.parametrize(
    ("handler", "error_messages", "end"),
    [
        (_answers_true, False, "returned bool; expected None (done) or wait_registry.handler.Discard(reason)"),
        (_never_ends, False, "TimeoutError: attempt 1 was over its limit of 0.1 s"),
        (_refuses_with_the_value, True, "PermanentError: no such order: b'value'"),
        (_refuses_with_the_value, False, "PermanentError"),
        (_says_much, True, "no no..."),
        (_says_what_a_terminal_obeys, True, "PermanentError: \\x1b[2J"),
    ],
)
async def test_the_line_ends_with_what_may_be_logged(
    handler: Handler, error_messages: bool, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = PipelineBench(handler, max_attempts=1, handler_timeout_s=0.1, log={"error_messages": error_messages})
    with caplog.at_level(logging.WARNING, "processor.settlement.dead_letters"):
        bench.context.watchdog.start()
        bench.poll(0)
        await bench.run_until(bench.settled)
        bench.context.watchdog.stop()
        await bench.pool.stop()
    [line] = [record.getMessage() for record in caplog.records if record.name == "processor.settlement.dead_letters"]
    assert line.endswith(end)
    assert len(line) < 650
