"""What fails in the last flush or in a background task ends the process with its reason, however its tasks end (P8)."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from processor.event_loop import run_and_end
from processor.fault import Fault
from processor.handlers.handler_life import HandlerLife
from processor.handlers.python import AsynchronousHandler, ContextualHandler
from processor.intake.broker_watch import BrokerWatch
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.subscription import subscription
from processor.run import Run
from processor.service import ProcessorService
from processor.wiring import Facts
from processor.writing.outbox import Outbox, Receipt
from tests.unit.processor.parts import done, iterate_until
from wait_registry.errors import ConfigurationError, PermanentError, WaitRegistryError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.tree import Settings

Work = Callable[[Outbox, Fault], Awaitable[None]]


def run(monkeypatch: pytest.MonkeyPatch, work: Work, **librdkafka: object) -> None:
    """Run the service, on librdkafka's mock brokers, from after its start checks on."""
    kafka, processor = {"test.mock.num.brokers": 1, **librdkafka}, {"topics": ["input"], "group": "group"}
    settings = Settings.model_validate({"kafka": {"librdkafka": kafka}, "processor": processor})

    async def main() -> None:
        async def until(self: Run, _: object) -> None:
            await work(self._loop.writers.outbox, self._fault)

        monkeypatch.setattr(Run, "until", until)
        service, wait_topic = ProcessorService(settings), TopicIdentity("wait", "id", 1)
        # Mock brokers have no cluster ID.
        topics = subscription(settings, "instance", ())
        facts = Facts("cluster", "instance", topics, ConsumedTopics("group", {}), wait_topic)
        service.facts = lambda *_: facts  # type: ignore[method-assign]
        await service.work(AsynchronousHandler(done), admin(settings.kafka), wait_topic)

    asyncio.run(asyncio.wait_for(main(), 30))


def _send_tombstone(outbox: Outbox, partition: int) -> None:
    outbox.expect(1)
    receipt = Receipt(outbox, "a tombstone", "wait", lambda message: None, [])
    outbox.put("wait", None, b"id", partition, receipt, [])


@pytest.mark.guarantee("P8.1")
def test_a_tombstone_refused_in_the_last_flush_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(outbox: Outbox, fault: Fault) -> None:
        _send_tombstone(outbox, 99)  # the topic has four partitions

    with pytest.raises(WaitRegistryError, match="writing a tombstone"):
        run(monkeypatch, work)


def test_the_last_reports_come_in_the_event_loops_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """They put events into the inbox, which asks for the running event loop."""
    threads: list[int] = []

    async def work(outbox: Outbox, fault: Fault) -> None:
        outbox.expect(1)
        receipt = Receipt(outbox, "a tombstone", "wait", lambda _: threads.append(threading.get_ident()), [])
        outbox.put("wait", None, b"id", 0, receipt, [])

    run(monkeypatch, work)
    assert threads == [threading.get_ident()]


def test_what_the_last_flush_leaves_is_said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.service.LAST_FLUSH_S", 0.0)

    async def work(outbox: Outbox, fault: Fault) -> None:
        _send_tombstone(outbox, 0)

    with caplog.at_level(logging.WARNING):
        run(monkeypatch, work, **{"test.mock.broker.rtt": 60_000})
    assert "the outcomes of 1 records aren't acknowledged" in caplog.text


def test_an_error_of_the_broker_watch_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(watch: BrokerWatch) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("processor.intake.broker_watch.PROBE_EVERY_S", 0)
    monkeypatch.setattr(BrokerWatch, "run_once", breaks)

    async def work(outbox: Outbox, fault: Fault) -> None:
        await asyncio.wait_for(iterate_until(lambda: fault.error), 5)

    with pytest.raises(ZeroDivisionError):
        run(monkeypatch, work)


async def refuses() -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_loop_ends_although_a_task_refuses_to(caplog: pytest.LogCaptureFixture) -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> None:
        left.append(asyncio.create_task(refuses()))
        await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        run_and_end(main(), 0.01, Fault())
    assert "1 tasks" in caplog.text
    assert not left.pop().done()
    gc.collect()  # asyncio reports its end here, and in no other test


def test_tasks_that_end_when_cancelled_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def cleans_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def main() -> None:
        main.task = asyncio.create_task(cleans_up())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        run_and_end(main(), 30.0, Fault())
    assert ended == ["cleaned up"]
    assert caplog.text == ""


def test_the_error_of_the_main_coroutine_comes_out() -> None:
    async def main() -> None:
        raise PermanentError("no")

    with pytest.raises(PermanentError):
        run_and_end(main(), 1.0, Fault())


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (lambda: sys.exit(), r"SystemExit\(\)"),
        (lambda: asyncio.get_running_loop().stop(), r"RuntimeError\(Event loop stopped"),
    ],
    ids=["exit", "stop"],
)
def test_code_that_ends_the_event_loop_ends_the_process_in_order(ends: Callable[[], None], said: str) -> None:
    fault, ended = Fault(), []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(ends)
        await iterate_until(lambda: fault.error)
        ended.append("in order")
        fault.raise_if_any()

    with pytest.raises(PermanentError, match=said):
        run_and_end(main(), 1.0, fault)
    assert ended


@pytest.mark.parametrize("error", [SystemExit(), asyncio.CancelledError()], ids=["exit", "cancelled"])
def test_what_ends_the_main_coroutine_has_a_sentence(error: BaseException) -> None:
    async def main() -> None:
        raise error

    with pytest.raises(PermanentError, match="ended the event loop"):
        run_and_end(main(), 1.0, Fault())


tenant: ContextVar[str] = ContextVar("tenant", default="none")


class Background:
    """A handler that enters a task group; each step sleeps for so long, or raises."""

    def __init__(self, **steps: float | BaseException) -> None:
        self._steps, self._group = steps, asyncio.TaskGroup()

    async def _step(self, name: str) -> None:
        step = self._steps.get(name, 0)
        if isinstance(step, BaseException):
            raise step
        await asyncio.sleep(step)

    async def __aenter__(self) -> Background:
        await self._step("enter")
        tenant.set("ACME")
        await self._group.__aenter__()
        self._group.create_task(self._step("run"))
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._step("leave")
        await self._group.__aexit__(*error)

    handle = staticmethod(done)


def life_of(fault: Fault, **steps: float | BaseException) -> HandlerLife:
    return HandlerLife(ContextualHandler("shop", Background(**steps), lambda *_: AsynchronousHandler(done)), fault)


@pytest.mark.parametrize(
    ("steps", "fault_said", "said"),
    [
        ({"run": 3600}, "None", "None"),
        ({"run": ConnectionResetError()}, "in the background has failed", "ExceptionGroup"),
        ({"leave": OSError("closed")}, "None", r"OSError: closed \(.*test_service.py"),
    ],
    ids=["waits", "fails", "leaving fails"],
)
async def test_a_handler_is_left_in_the_task_that_entered_it(
    steps: dict[str, Any], fault_said: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    life = life_of(fault := Fault(), **steps)
    assert await life.open(lambda: False)
    assert tenant.get() == "ACME"
    await iterate_until(lambda: fault_said in str(fault.error))
    assert re.search(said, str(await life.close(0.05)))
    assert ("hasn't ended in 0.1 s" in caplog.text) is (said == "None")


async def test_the_process_ends_although_the_handler_does_not_open() -> None:
    assert not await life_of(Fault(), enter=3600).open(lambda: True)
    with pytest.raises(ConfigurationError, match="raised CancelledError"):
        await life_of(Fault(), enter=asyncio.CancelledError()).open(lambda: False)
