"""Check the settings of a service: whether they contradict each other, and whether the handler can be called."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from processor.handlers.routed import load_handlers
from wait_registry.diagnosis import Diagnosis, ok, warning
from wait_registry.settings.relations import Service, relation_problems
from wait_registry.settings.secrets import without_credentials
from wait_registry.settings.tree import Settings
from waitreg.processor import make_handlers_importable

HANDLER_FIX: Final = "correct processor.handler (module:name or URL), or run where the module can be imported"
_ADDRESSES: Final = ("http://", "https://", "grpc://", "grpcs://")
_CONNECT_S: Final = 3.0
_SET: Final = "change one of them in waitreg.toml, or by its variable, which `waitreg config --all` lists"


def relations(service: Service, settings: Settings) -> Iterator[Diagnosis]:
    """Yield every contradiction among the settings of this service, or one diagnosis that there is none."""
    problems = relation_problems(settings, service)
    yield from (replace(problem, fix=_SET) for problem in problems)
    if not problems:
        yield ok("no contradictions")


def handler(settings: Settings) -> Iterator[Diagnosis]:
    """Load each handler as a processor does, without opening it; connect to addresses and to a schema registry.

    Raises:
        ConfigurationError: a handler can't be imported or can't be a handler.
    """
    names = settings.processor.handler_names
    if not names:
        # `relations` reports that it is missing.
        return
    make_handlers_importable()
    load_handlers(settings.processor)
    yield from _schema_registry(settings.processor.schema_registry.url)
    fix = "start that service or correct processor.handler; until it answers, records fail and are dead-lettered"
    for name in names:
        shown = without_credentials(name)
        unreachable = _unreachable(name) if name.startswith(_ADDRESSES) else None
        yield warning(f"{shown} can't be connected to: {unreachable}", fix) if unreachable else ok(shown)


def _schema_registry(urls: str) -> Iterator[Diagnosis]:
    fix = "start it or correct processor.schema_registry.url; until it answers, records with a new schema fail"
    for url in filter(None, (url.strip() for url in urls.split(","))):
        if unreachable := _unreachable(url):
            yield warning(f"the schema registry {without_credentials(url)} can't be connected to: {unreachable}", fix)


def _unreachable(url: str) -> str | None:
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), timeout=_CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
