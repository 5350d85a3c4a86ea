"""How the work ends (P8), and what the line of a dead letter has in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from processor.writing.outbox import Receipt
from tests.unit.processor.loop_bench import LoopBench
from tests.unit.processor.parts import PLACE, endless, iterate_until
from wait_registry.handler import HandlerResult, PermanentError, Record

BROKEN = PermanentError("a tombstone was refused")
UNREACHABLE = {"linger.ms": 600_000, "message.timeout.ms": 0}


def stopped(bench: LoopBench) -> LoopBench:
    bench.stop.set()
    return bench


@pytest.mark.parametrize("when", ["before leaving the group", "after leaving it"])
async def test_a_fault_in_the_drain_is_raised_after_leaving_the_group(when: str) -> None:
    bench = stopped(LoopBench(endless, drain_timeout_s=2))
    bench.poll(0)
    await bench.run_until(lambda: bench.pool.running)
    if when == "before leaving the group":
        bench.poll(1)
    running = asyncio.ensure_future(bench.parts.run.until(bench.stop))
    if when == "after leaving it":
        await iterate_until(lambda: bench.parts.run.leaving is not None and bench.parts.run.leaving.done())
    bench.fault.report(BROKEN)
    with pytest.raises(PermanentError) as raised:
        await running
    assert raised.value is BROKEN
    assert all(worker.done() for worker in bench.pool.workers)
    with pytest.raises(RuntimeError, match="after shutdown"):
        await bench.group_consumer.poll(1, 0, (), bench.loop.give_up)


async def test_registered_records_are_handled_before_the_group_is_left() -> None:
    calls: list[tuple[int, bool]] = []

    async def handler(record: Record) -> None:
        await asyncio.sleep(0)
        calls.append((record.offset, bench.parts.run.leaving is None))

    bench = stopped(LoopBench(handler))
    bench.poll(*range(20))
    await bench.run_until(lambda: bench.stats.registered)
    await bench.parts.run.until(bench.stop)
    assert calls == [(offset, True) for offset in range(20)]
    assert bench.settled()
    assert bench.stats.settled == {"done": 20}


async def test_without_registrations_calls_end_before_the_group_is_left() -> None:
    ended: list[bool] = []

    async def handler(record: Record) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        ended.append(bench.parts.run.leaving is None)

    bench = stopped(LoopBench(handler, registration="off", max_in_flight=2))
    bench.poll(0, 1, 2)
    await bench.parts.run.until(bench.stop)
    assert ended == [True] * 3


@pytest.mark.guarantee("P8.17")
async def test_what_the_drain_has_waited_for_in_vain_is_not_waited_for_again() -> None:
    bench = stopped(LoopBench(drain_timeout_s=0.05, flush_timeout_s=100, producer=UNREACHABLE))
    bench.poll(0)
    await bench.parts.run.until(bench.stop)
    assert bench.engine.records.in_flight([PLACE])
    # Without the rule it would wait for flush_timeout_s.
    await asyncio.wait_for(bench.loop.give_up([PLACE]), 50)


async def test_a_fault_in_the_last_turn_of_the_drain_is_raised() -> None:
    async def fails_when_stopped(record: Record) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            bench.fault.report(BROKEN)

    bench = stopped(LoopBench(fails_when_stopped, drain_timeout_s=0.01))
    bench.poll(0)
    await bench.run_until(lambda: bench.pool.running)
    with pytest.raises(PermanentError):
        await bench.parts.run.until(bench.stop)


async def test_what_is_not_acknowledged_at_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bench = stopped(LoopBench(flush_timeout_s=0.05, registration="off", producer=UNREACHABLE))
    bench.outbox.expect(1)
    receipt = Receipt(bench.outbox, "a tombstone", "wait", lambda message: None, [])
    bench.outbox.put("wait", None, b"id", 0, receipt, [])
    with caplog.at_level(logging.INFO):
        await bench.parts.run.until(bench.stop)
    assert "no record is left" not in caplog.text
    assert "1 tombstones or dead letters" in caplog.text


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
    bench = LoopBench(handler, max_attempts=1, handler_timeout_s=0.1, log={"error_messages": error_messages})
    with caplog.at_level(logging.WARNING, "processor.writing.failed_records"):
        bench.watchdog.start()
        bench.poll(0)
        await bench.run_until(bench.settled)
        bench.watchdog.stop()
        await bench.pool.stop()
    [line] = [record.getMessage() for record in caplog.records if record.name == "processor.writing.failed_records"]
    assert line.endswith(end)
    assert len(line) < 650
