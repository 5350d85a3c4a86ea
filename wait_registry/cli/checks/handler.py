"""Can the handler be had: imported, or its host connected to?"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from wait_registry.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

SUBJECT: Final = "handler"
FIX: Final = "correct processor.handler (module:name or URL), or run where the module can be imported"
_CONNECT_S: Final = 3.0


def handler(settings: Settings) -> Iterator[Diagnosis]:
    """Load the handler as a processor does, without opening it; connect to the host of an HTTP handler.

    Raises ConfigurationError: it can't be imported or can't be a handler.
    """
    from processor.handlers.loading import load_handler
    from wait_registry.cli.processor import make_handlers_importable
    from wait_registry.settings.masking import without_credentials

    name = settings.processor.handler
    if not name:
        # The relations have said that it is missing.
        return
    make_handlers_importable()
    load_handler(settings.processor)
    shown = without_credentials(name)
    unreachable = _unreachable(name) if name.startswith(("http://", "https://")) else None
    if unreachable is None:
        yield Diagnosis(SUBJECT, Severity.OK, shown)
        return
    fix = "start that service or correct processor.handler; until it answers, records fail and are dead-lettered"
    yield Diagnosis(SUBJECT, Severity.WARNING, f"{shown} can't be connected to: {unreachable}", fix)


def _unreachable(url: str) -> str | None:
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), timeout=_CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
