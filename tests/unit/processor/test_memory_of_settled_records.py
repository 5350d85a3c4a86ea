"""A record that failed isn't kept in memory by its error: no more records are in memory than the limit allows (P7)."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from processor.handlers.python import PlainFunctionHandler
from processor.writing.outbox import Headers, Report
from tests.unit.processor.loop_bench import LoopBench
from tests.unit.processor.parts import iterate_until
from wait_registry.handler import HandlerResult, PermanentError, Record, TransientError
from wait_registry.records import header_names

LAST_STEPS_S = 5.0

OffLoop: TypeAlias = Callable[[Record], HandlerResult]
Handler: TypeAlias = Callable[[Record], Awaitable[HandlerResult]] | PlainFunctionHandler
Kind: TypeAlias = Callable[[OffLoop], Handler]


class Held:
    """Lives as long as who holds it."""


class Value(bytes):
    """A record's value that shows whether it is still in memory; bytes alone take no weak reference."""

    def __init__(self, *_: object) -> None:
        self.held = Held()


@dataclass(frozen=True)
class RefusingError(Exception):
    """A user's error class that allows no attribute to be set."""

    field: str


def _inner(record: Record) -> None:
    raise KeyError(f"no field in {len(record.value or b'')} bytes")


def fails(record: Record) -> HandlerResult:
    raise PermanentError("no")


def fails_from_another(record: Record) -> HandlerResult:
    try:
        _inner(record)
    except KeyError as error:
        raise PermanentError("no") from error
    return None


def fails_while_handling_another(record: Record) -> HandlerResult:
    try:
        _inner(record)
    except KeyError:
        raise PermanentError("no")  # noqa: B904 - the context is what this is about
    return None


def fails_and_keeps_its_errors(record: Record) -> HandlerResult:
    try:
        _inner(record)
    except KeyError as caught:
        kept = caught
    error = PermanentError("no")
    raise error from kept


def fails_in_a_group(record: Record) -> HandlerResult:
    try:
        _inner(record)
    except KeyError as caught:
        kept = caught
    raise BaseExceptionGroup("several", [kept, PermanentError("no")])


def refuses_to_be_changed(record: Record) -> HandlerResult:
    raise RefusingError("amount")


FAILING = [
    *(fails, fails_from_another, fails_while_handling_another),
    *(fails_and_keeps_its_errors, fails_in_a_group, refuses_to_be_changed),
]


def on_the_loop(handler: OffLoop) -> Callable[[Record], Awaitable[HandlerResult]]:
    async def handle(record: Record) -> HandlerResult:
        return handler(record)

    return handle


def in_a_thread(handler: OffLoop) -> PlainFunctionHandler:
    return PlainFunctionHandler(handler, 1)


KINDS: list[Kind] = [on_the_loop, in_a_thread]


@pytest.fixture(autouse=True)
def _without_the_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Settled:
    """One record through the pipeline: whether its value is still in memory, and what its dead letter says."""

    def __init__(self, handler: Handler, then: Callable[[], object] = lambda: None, **settings: object) -> None:
        self._handler, self._then, self._settings = handler, then, settings
        self.stack_trace = ""
        self.tombstones = 0
        asyncio.run(asyncio.wait_for(self._main(), 60))

    async def _main(self) -> None:
        bench = LoopBench(self._handler, backoff_initial_s=0.001, **self._settings)  # type: ignore[arg-type]
        put = bench.outbox.put

        def sent(
            topic: str, value: bytes | None, key: bytes | str | None, partition: int, report: Report, headers: Headers
        ) -> None:
            self.tombstones += value is None
            said = dict(headers).get(header_names.DLQ_ERROR_STACKTRACE)
            self.stack_trace += (said or b"").decode()
            put(topic, value, key, partition, report, headers)

        bench.outbox.put = sent  # type: ignore[method-assign]
        bench.watchdog.start()
        value = self._start(bench)
        await bench.run_until(bench.settled)
        self._then()
        # The last holder is in its last steps: a thread that becomes idle, a task that the loop ends.
        given_up_s = time.monotonic() + LAST_STEPS_S
        await iterate_until(lambda: value() is None or time.monotonic() > given_up_s)
        self.in_memory = value() is not None
        bench.watchdog.stop()
        await bench.pool.stop()

    def _start(self, bench: LoopBench) -> weakref.ref[Held]:
        value = Value(b"value")
        bench.poll(0, value=value)
        return weakref.ref(value.held)


@pytest.mark.guarantee("P7.6")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failing", FAILING)
def test_a_failed_record_is_freed_and_its_dead_letter_complete(failing: OffLoop, kind: Kind) -> None:
    settled = Settled(kind(failing))
    assert not settled.in_memory
    assert f"in {failing.__name__}\n" in settled.stack_trace
    assert ("in _inner\n" in settled.stack_trace) is (failing not in (fails, refuses_to_be_changed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_fails_once_and_then_succeeds_is_free(kind: Kind) -> None:
    tries = iter([TransientError("not yet")])

    def fails_once(record: Record) -> HandlerResult:
        for error in tries:
            raise error
        return None

    settled = Settled(kind(fails_once))
    assert (settled.tombstones, settled.stack_trace) == (1, "")
    assert not settled.in_memory


def test_a_record_whose_handler_was_over_its_limit_is_free() -> None:
    async def fails_at_its_end(record: Record) -> HandlerResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            fails_from_another(record)
        return None

    settled = Settled(fails_at_its_end, handler_timeout_s=0.05, max_attempts=1)
    assert not settled.in_memory
    assert "in _inner\n" in settled.stack_trace
    assert "over its limit" in settled.stack_trace


def test_a_record_whose_plain_handler_fails_after_its_limit_is_free() -> None:
    may_end = threading.Event()

    def fails_late(record: Record) -> HandlerResult:
        may_end.wait(60)
        raise PermanentError("no")

    settled = Settled(in_a_thread(fails_late), then=may_end.set, handler_timeout_s=0.05, max_attempts=1)
    assert not settled.in_memory
    assert "over its limit" in settled.stack_trace
