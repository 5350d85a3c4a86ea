"""A task that ignores every cancellation is abandoned when the event loop ends."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from processor.service.ending import run_and_end
from wait_registry.errors import PermanentError


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
        run_and_end(main(), 0.01)
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
        run_and_end(main(), 30.0)
    assert ended == ["cleaned up"]
    assert caplog.text == ""


def test_the_error_of_the_main_coroutine_comes_out() -> None:
    async def main() -> None:
        raise PermanentError("no")

    with pytest.raises(PermanentError):
        run_and_end(main(), 1.0)
