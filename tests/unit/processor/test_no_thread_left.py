"""A thread that can't be started says nothing about the record: no dead letter, no lost slot, a fault (P1, P8)."""

from __future__ import annotations

import threading

import pytest

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts, Result
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry
from processor.handlers.python import PlainFunctionHandler
from processor.handlers.threads import NoThreadError, Threads
from processor.retry_decision import RetryDecision, time_limits
from processor.stats import Stats
from tests.unit.processor.parts import entry, iterate_until
from wait_registry.clock import SystemClock
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings

CLOCK = SystemClock()


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_no_record_gets_an_outcome_and_the_process_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ProcessorSettings(max_in_flight=1)
    settled: list[Result] = []
    fault, calls = Fault(), []

    def settle(one: Entry, result: Result, elapsed_s: float) -> None:
        settled.append(result)

    def handle(record: Record) -> None:
        calls.append(record)

    handler = PlainFunctionHandler(handle, 1)
    decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
    attempts = Attempts(handler, settings.handler_timeout_s, decision, CLOCK, Stats())
    watchdog = DeadlineWatchdog(CLOCK, settings.handler_timeout_s)
    dispatcher = Dispatcher(1, "group", attempts, watchdog, CLOCK, fault, settle, lambda renewed: None)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        dispatcher.add([entry(AssignedPartition("input", 0), 0)])
        await iterate_until(lambda: fault.error or settled)
    assert (settled, calls) == ([], [])
    assert isinstance(fault.error, NoThreadError)
    assert "can't start new thread" in str(fault.error)
    assert handler.slots is not None
    assert (handler.slots.free, handler.slots.blocked) == (1, 0)
    await dispatcher.stop()


def test_a_thread_that_did_not_start_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, ran = Threads(1), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(NoThreadError):
            threads.submit(ran.set)
    threads.submit(ran.set)
    assert ran.wait(30)
    threads.close()
