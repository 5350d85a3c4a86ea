"""Check the handler of a processor: whether it can be loaded, and whether its service can be reached."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from processor.handlers.routed import load_handlers
from wait_registry.diagnosis import Diagnosis, ok, warning
from wait_registry.settings.masking import without_credentials
from wait_registry.settings.tree import Settings
from waitreg.processor import make_handlers_importable

HANDLER_FIX: Final = "correct processor.handler (module:name or URL), or run where the module can be imported"
_ADDRESSES: Final = ("http://", "https://", "grpc://", "grpcs://")
_CONNECT_S: Final = 3.0


def handler(settings: Settings) -> Iterator[Diagnosis]:
    """Load each handler as a processor does, without opening it; connect to addresses and to a schema registry.

    Raises:
        ConfigurationError: a handler can't be imported or can't be a handler.
    """
    names = settings.processor.handler_names
    if not names:
        # The check of the settings reports that it is missing.
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
