"""A call that blocks the worker slots is cancelled by choice, and its record is dead-lettered as blocked (P7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import ScenarioFactory
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record
from wait_registry.telemetry.metrics import PROCESSOR_BLOCKED_CANCELLED, PROCESSOR_LONG_CALLS, Metric

BLOCKED_AFTER_S = 0.5
SLOW: dict[str, Any] = {"handler_timeout_s": 600, "blocked_after_s": BLOCKED_AFTER_S, "max_in_flight": 1}


async def hangs(record: Record) -> None:
    """Never answer some records."""
    if record.value == b"hang":
        await asyncio.sleep(3600)


def value(running: RunningProcessor, metric: Metric) -> float | None:
    return next(iter(running.values(metric)), None)


@pytest.mark.guarantee("P7.18")
@pytest.mark.parametrize("mode", ["eager", "off"])
def test_blocked_calls_are_cancelled_and_their_records_dead_lettered(
    processor_scenario: ScenarioFactory, mode: str
) -> None:
    at = processor_scenario(hangs, 1, registration=mode, cancel_blocked=True, **SLOW, ttl_s=100_000)
    at.produce([b"fine", b"fine", b"hang", b"fine", b"hang", b"fine"])
    running = at.start()
    wait_until(lambda: running.done == 4, 120, "the records behind the blocked ones")
    assert value(running, PROCESSOR_BLOCKED_CANCELLED) == 2
    running.stop()
    letters = at.letters()
    assert [letter.value for letter in letters] == [b"hang", b"hang"]
    assert [dict(letter.headers)["DLQ_REASON"] for letter in letters] == [b"blocked", b"blocked"]
    messages = [dict(letter.headers)["DLQ_ERROR_MESSAGE"] or b"" for letter in letters]
    assert all(b"held 1 of 1 worker slots" in message for message in messages)
    assert at.committed() == [6]


def test_a_blocked_call_is_only_reported_by_default(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(hangs, 1, registration="off", **SLOW)
    at.produce([b"fine", b"hang", b"fine"])
    running = at.start()
    wait_until(lambda: value(running, PROCESSOR_LONG_CALLS) == 1, what="a long call")
    assert value(running, PROCESSOR_BLOCKED_CANCELLED) == 0
    assert running.done == 1
    running.stop()


@pytest.mark.parametrize("ordering", ["unordered", "key"])
def test_calls_in_threads_cannot_be_cancelled_and_the_setting_is_refused(
    ordering: str, processor_scenario: ScenarioFactory
) -> None:
    def plain(record: Record) -> None:
        """Be done."""

    at = processor_scenario(plain, 1, cancel_blocked=True, ordering=ordering, registration="off")
    with pytest.raises(
        ConfigurationError, match=r"run in threads, which can't be cancelled. Make the handler an async"
    ):
        at.start().join()
