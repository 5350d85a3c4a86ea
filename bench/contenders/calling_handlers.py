"""Handlers that call the service from Python, as users write them; the processor loads them as any user's handler.

The service's URL is in an environment variable. What fails raises, so the record would be handled again.
"""

from __future__ import annotations

import os
import threading
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import aiohttp

if TYPE_CHECKING:
    from wait_registry.handler import Record

VARIABLE: Final = "BENCH_SERVICE_URL"
WITH_AIOHTTP: Final = "bench.contenders.calling_handlers:WithAiohttp"
PLAIN_FUNCTION: Final = "bench.contenders.calling_handlers:plain_function"
CONTENT_TYPE: Final = "application/octet-stream"

_OWN: Final = threading.local()


class WithAiohttp:
    """The handler of the README: a session for all calls."""

    async def __aenter__(self) -> Self:
        self._url = os.environ[VARIABLE]
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def handle(self, record: Record) -> None:
        headers = {"Content-Type": CONTENT_TYPE, "Idempotency-Key": record.idempotency_key}
        async with self._session.post(self._url, data=record.value, headers=headers) as answer:
            answer.raise_for_status()


def plain_function(record: Record) -> None:
    """Call with the standard library's client, by a connection per thread."""
    connection = getattr(_OWN, "connection", None)
    if connection is None:
        connection = _OWN.connection = HTTPConnection(urlsplit(os.environ[VARIABLE]).netloc)
    headers = {"Content-Type": CONTENT_TYPE, "Idempotency-Key": record.idempotency_key}
    connection.request("POST", "/", record.value, headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise OSError(f"the service answered {answer.status}")
