"""An event loop that ends although a handler doesn't."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from processor.fault import Fault
from wait_registry.errors import PermanentError

log = logging.getLogger(__name__)


def run_and_end(main: Coroutine[Any, Any, None], limit_s: float, fault: Fault) -> None:
    """Run a coroutine on an event loop of its own, as ``asyncio.run`` does, which waits for all tasks without a limit.

    Args:
        main: what it raises comes out.
        limit_s: how long to wait for remaining tasks after their cancellation, s.
        fault: gets what other code does to end the loop; ``main`` must end then.

    Raises:
        PermanentError: other code has cancelled ``main``, or it called ``sys.exit()``.
    """
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        _run(loop, loop.create_task(main), fault)
    except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
        raise _ended_by(error) from error
    finally:
        try:
            loop.run_until_complete(_end_tasks(limit_s))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _run(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None], fault: Fault) -> None:
    """Run a task to its end, although a task or a callback of the user's code stops the loop."""
    while not main.done():
        try:
            loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
            if main.done():
                raise
            fault.report(_ended_by(error))
    main.result()


def _ended_by(error: BaseException) -> PermanentError:
    return PermanentError(
        f"the handler or a library ended the event loop: {type(error).__name__}({error}). They must not call "
        "sys.exit() or stop the loop: raise an exception in the handler instead. Unfinished records stay registered"
    )


async def _end_tasks(limit_s: float) -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return
    _, refusing = await asyncio.wait(left, timeout=limit_s)
    if refusing:
        log.warning("%d tasks ignored cancellation; abandoning them", len(refusing))
