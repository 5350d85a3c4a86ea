"""A dead letter's log line gives our own reason in words; a handler's may hold the record, so they stay out."""

from __future__ import annotations

import asyncio
import logging

import pytest

from processor.entry import EntryState
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.handler import HandlerResult, PermanentError, Record


async def _answers_true(record: Record) -> HandlerResult:
    return True  # type: ignore[return-value]


async def _refuses_with_the_value(record: Record) -> HandlerResult:
    raise PermanentError(f"no such order: {record.value!r}")


async def _never_ends(record: Record) -> HandlerResult:
    await asyncio.Event().wait()
    return None


def _logged(handler: object, caplog: pytest.LogCaptureFixture) -> str:
    async def main() -> None:
        bench = PipelineBench(handler, max_attempts=1, handler_timeout_s=0.1)  # type: ignore[arg-type]
        bench.context.watchdog.start()
        bench.dispatcher.add([bench.registered(0, EntryState.READY)])
        while bench.outstanding.records:
            bench.producer.poll(0)
            await asyncio.sleep(0.001)
        bench.context.watchdog.stop()
        await bench.dispatcher.stop()

    with caplog.at_level(logging.WARNING, "processor.dead_letters"):
        asyncio.run(asyncio.wait_for(main(), 60))
    [line] = [record.getMessage() for record in caplog.records if record.name == "processor.dead_letters"]
    return line


def test_an_answer_that_is_none_is_named_with_what_was_expected(caplog: pytest.LogCaptureFixture) -> None:
    assert "the handler returned bool; expected None (done) or" in _logged(_answers_true, caplog)


def test_a_limit_that_was_passed_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert "TimeoutError: attempt 1 was over its limit of 0.1 s" in _logged(_never_ends, caplog)


def test_what_a_handler_says_never_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    line = _logged(_refuses_with_the_value, caplog)
    assert line.endswith("PermanentError")
