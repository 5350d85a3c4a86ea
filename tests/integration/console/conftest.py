"""A console with an incident in its tables, and a browser to look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, StorageState

from tests.integration.console.served_console import Get, served
from tests.integration.processor.conftest import processors
from tests.integration.queries.conftest import incident
from tests.integration.redrive.conftest import at, handling
from tests.integration.sink.conftest import start_sink
from tests.support.browser import Visit, chromium, running_browser
from tests.support.console import running_console
from tests.support.database import Database, own_tables
from tests.support.stack import Stack
from wait_registry.settings.tree import Settings

__all__ = ["at", "handling", "incident", "processors", "start_sink"]

ROWS = Path(__file__).with_name("rows.sql")

Visitor = Callable[..., Visit]


@pytest.fixture(scope="session")
def has_browser() -> None:
    """Skip before anything is started."""
    chromium()


@pytest.fixture(scope="module")
def shop(has_browser: None, stack: Stack) -> Iterator[Settings]:
    """Settings of the schema that rows.sql has filled."""
    with own_tables(stack, {"wait.topic": "wait"}) as (settings, connection):
        connection.execute(ROWS.read_bytes())
        yield settings


@pytest.fixture(scope="module")
def browser(has_browser: None) -> Iterator[Browser]:
    """The browser of one file: Playwright's loop must have ended before another file's coroutines run."""
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def origin(shop: Settings) -> Iterator[str]:
    """Where the console shows the incident to everybody."""
    with running_console(shop) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def visit(browser: Browser, origin: str) -> Iterator[Visitor]:
    """Open windows of the browser, each with options of its own; they are closed when the test ends.

    Pages don't refresh themselves unless a test asks for it: a part must not change while axe looks at it.
    """
    contexts = []

    def visit(refresh: bool = False, **options: Any) -> Visit:
        switch = "on" if refresh else "off"
        stored: StorageState = {
            "origins": [{"origin": origin, "localStorage": [{"name": "waitreg.refresh", "value": switch}]}]
        }
        context = browser.new_context(storage_state=stored, **options)
        contexts.append(context)
        return Visit(context, origin)

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture
def window(visit: Visitor) -> Iterator[Visit]:
    """A window in which nothing went wrong when the test ends."""
    opened = visit()
    yield opened
    assert opened.problems() == []


@pytest.fixture(scope="module")
def get(incident: Settings) -> Iterator[Get]:
    """Get a page of a console that shows the incident to everybody."""
    with served(incident) as get:
        yield get


@pytest.fixture
def job(incident: Settings) -> Iterator[str]:
    """A job that archived dead letters, whose conditions quote a key."""
    Database(incident.postgres.url.get_secret_value()).execute(
        incident,
        """
            insert into operation (
                job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions,
                allowed, target, rate, ends, expected, counts, changed_at, changed_by
            )
            values (
                'job-1', 'archive', 'payments', 'finished', now(), 'anna', false, 'command', 'test orders',
                '{key=4711}', '{}', 'redelivery', 10, '{}', '{}', '{"archived": 3, "conflict": 1}', now(), 'anna'
            )
            """,
    )
    yield "job-1"
    Database(incident.postgres.url.get_secret_value()).execute(incident, "delete from operation")
