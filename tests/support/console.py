"""The console of one test, served in a thread of the test's own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any

from console.service import ConsoleService
from redrive.outcomes import outcome_rows
from tests.support.waiting import wait_until
from wait_registry.cli.read_tables import age
from wait_registry.settings.root import Settings


@contextmanager
def running_console(settings: Settings, **console: Any) -> Iterator[int]:
    """Serve the console on a free port until the end of the block.

    Args:
        settings: where Postgres is.
        console: settings of the section `console` that differ.

    Yields:
        The port on loopback.
    """
    own = settings.console.model_copy(update={"port": 0, **console})
    settings = settings.model_copy(update={"console": own})
    service = ConsoleService(settings, lambda tables: age(tables, settings), partial(outcome_rows, settings))
    thread = Thread(target=service.run, daemon=True)
    thread.start()
    wait_until(lambda: service.port != 0, what="the console listens")
    try:
        yield service.port
    finally:
        service.request_stop()
        thread.join(30)
    assert not thread.is_alive()
