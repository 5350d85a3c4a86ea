"""A console that shows the incident, and what its pages say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.support.console import Answer, ask, running_console
from wait_registry.postgres.query_file import query_names
from wait_registry.settings.tree import Settings
from waitreg.console.pages.routes import ROUTES

Get = Callable[..., Answer]

LONG = "since=365d"
_PAGES = [route.path for route in ROUTES if "{" not in route.path]


@contextmanager
def served(incident: Settings, **console: Any) -> Iterator[Get]:
    """Serve the incident with these settings of the console; what is yielded gets a page."""
    with running_console(incident, **console) as port:
        yield partial(ask, port)


def every_page(get: Get, places: Sequence[str], **headers: str) -> dict[str, str]:
    """Return the text of every page: those without values, each question, each dead letter, each record."""
    paths = [*_PAGES, *(f"/questions/{name}" for name in query_names()), f"/dead-letters?{LONG}&by=none", *places]
    return {path: get(path, **headers).text for path in paths}
