"""A process without a file descriptor can't try any record: it says so before, or ends, and dead-letters none."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from processor.calls.deadline import DeadlineWatchdog
from processor.handlers.descriptors import RESERVE, NoDescriptorError, no_descriptor, raise_descriptor_limit
from processor.handlers.grpc import GrpcHandler
from processor.handlers.http import HttpHandler
from processor.handlers.open_handler import OpenHandler
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.protocol.results import Failed
from tests.support.command import run_waitreg
from tests.unit.processor.parts import CLOCK, RECORD, attempts_of
from wait_registry.errors import ConfigurationError, PermanentError, TransientError, WaitRegistryError
from wait_registry.handler import Record
from wait_registry.settings.grpc import GrpcHandlerSettings
from wait_registry.settings.http import HttpHandlerSettings


def none_left() -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def as_it_comes() -> None:
    none_left()


def wrapped() -> None:
    try:
        none_left()
    except OSError as error:
        raise PermanentError("could not connect") from error


def followed() -> None:
    try:
        wrapped()
    except PermanentError:
        raise ValueError("what a client makes of it")  # noqa: B904 - that is how such clients raise


def of_the_host() -> None:
    raise OSError(errno.ENFILE, "Too many open files in system")


async def attempt(handler: OpenHandler) -> object:
    """Run all attempts at one record and return what came of it, or was raised."""
    attempts = attempts_of(handler, backoff_initial_s=0.0)
    watchdog = DeadlineWatchdog(CLOCK, 30.0)
    task = asyncio.current_task()
    assert task is not None
    if handler.slots is not None:
        await handler.slots.acquire()
    try:
        return await attempts.run(RECORD, watchdog.watch(task), CLOCK.monotonic())
    except WaitRegistryError as error:
        return error


@pytest.mark.guarantee("P8.9")
@pytest.mark.parametrize("failure", [as_it_comes, wrapped, followed, of_the_host])
@pytest.mark.parametrize("plain", [True, False])
def test_a_record_gets_no_outcome_whatever_is_made_of_the_lack(failure: Callable[[], None], plain: bool) -> None:
    calls: list[Record] = []

    def handle(record: Record) -> None:
        calls.append(record)
        failure()

    async def handle_async(record: Record) -> None:
        handle(record)

    handler: OpenHandler = PlainFunctionHandler(handle, 1) if plain else AsynchronousHandler(handle_async)
    ended = asyncio.run(asyncio.wait_for(attempt(handler), 30))
    assert isinstance(ended, NoDescriptorError)
    assert len(calls) == 1, "another try would fail alike"
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert "Too many open files" in str(ended) and f"this process may have {soft}" in str(ended)


def test_other_failures_are_the_records_own() -> None:
    async def handle(record: Record) -> None:
        try:
            none_left()
        except OSError:
            raise PermanentError("it was dealt with") from None

    assert isinstance(asyncio.run(attempt(AsynchronousHandler(handle))), Failed)
    assert no_descriptor(ConnectionRefusedError(errno.ECONNREFUSED, "refused")) is None
    looped = TransientError("a")
    looped.__cause__ = looped
    assert no_descriptor(looped) is None


def child(limits: tuple[int, int], what: Callable[[], None]) -> str:
    """Run a function of this module in a process with these limits, soft and hard, and return what it printed."""
    code = (
        f"import resource; from {__name__} import {what.__name__}; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, {limits}); {what.__name__}()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def call_with_none_left(handler: OpenHandler) -> None:
    """Call a handler that was opened while there were descriptors, and print what came of it."""
    await handler.open()
    taken: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    ended = await attempt(handler)
    for descriptor in taken:
        os.close(descriptor)
    await handler.close()
    print(type(ended).__name__, ended)


def calling_by_grpc() -> None:
    asyncio.run(call_with_none_left(GrpcHandler("grpc://127.0.0.1:1", GrpcHandlerSettings(), 30.0, 1)))


def calling_by_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        asyncio.run(call_with_none_left(HttpHandler(url, HttpHandlerSettings(), 2)))


@pytest.mark.guarantee("P8.9")
@pytest.mark.parametrize("calling", [calling_by_grpc, calling_by_http])
def test_a_call_that_finds_none_left_gives_the_record_no_outcome(calling: Callable[[], None]) -> None:
    assert child((256, 256), calling).startswith("NoDescriptorError the handler failed: ")


def opening_for_a_hundred() -> None:
    try:
        asyncio.run(HttpHandler("http://127.0.0.1:1/", HttpHandlerSettings(), 100).open())
    except ConfigurationError as error:
        print(error)
    else:
        print("opened")


def raising_the_limit() -> None:
    raise_descriptor_limit()
    print(resource.getrlimit(resource.RLIMIT_NOFILE))
    opening_for_a_hundred()


@pytest.mark.guarantee("P8.8")
def test_more_calls_than_descriptors_are_refused_at_the_start() -> None:
    assert child((100 + RESERVE, 100 + RESERVE), opening_for_a_hundred) == "opened\n"
    said = child((99 + RESERVE, 99 + RESERVE), opening_for_a_hundred)
    assert said.startswith(f"this process may have {99 + RESERVE} files and connections open, and processor.max_in_fl")
    assert f"need {100 + RESERVE}. " in said
    assert "lower processor.max_in_flight to 99" in said


def test_a_soft_limit_is_raised_to_the_hard_one() -> None:
    assert child((64, 512), raising_the_limit) == "(512, 512)\nopened\n"
    assert child((512, 512), raising_the_limit) == "(512, 512)\nopened\n"


def test_a_processor_does_so_before_it_loads_its_handler(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import resource\nraise ValueError(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = 1_048_576 if hard == resource.RLIM_INFINITY else min(hard, 1_048_576)
    variables = {
        "WAITREG_PROCESSOR__GROUP": "shop",
        "WAITREG_PROCESSOR__TOPICS": "orders",
        "WAITREG_PROCESSOR__HANDLER": "shop:handle",
        "WAITREG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
    }
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest - 1, hard))
    try:
        ended = run_waitreg(tmp_path, "processor", variables=variables)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert f"ValueError: {highest} (shop.py:2" in ended.errors
