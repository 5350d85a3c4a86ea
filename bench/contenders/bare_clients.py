"""HTTP clients without Kafka: so many calls at once with the same body, until the program is ended.

`python -m bench.contenders.bare_clients NAME URL N`; each does no more than its library needs for a call.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final
from urllib.parse import urlsplit

BODY: Final = bytes(200)
# A gRPC message: not compressed, its length, itself.
MESSAGE: Final = b"\0" + len(BODY).to_bytes(4, "big") + BODY
CONTENT_TYPE: Final = "application/octet-stream"
GRPC_HEADERS: Final = ["content-type: application/grpc", "te: trailers"]
WAIT_S: Final = 1.0
OK: Final = 200


async def aiohttp(url: str, in_flight: int) -> None:
    """Call with aiohttp: a session, a task per call."""
    from aiohttp import ClientSession, TCPConnector

    async def call(session: ClientSession) -> None:
        while True:
            async with session.post(url, data=BODY, headers={"Content-Type": CONTENT_TYPE}) as answer:
                answer.raise_for_status()
                await answer.read()

    async with ClientSession(connector=TCPConnector(limit=0)) as session, asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(call(session))


async def httptools(url: str, in_flight: int) -> None:
    """Call with httptools: a connection per call, and its parser on asyncio's protocols."""
    from httptools import HttpResponseParser  # type: ignore[import-not-found,unused-ignore]

    netloc, loop = urlsplit(url).netloc, asyncio.get_running_loop()
    host, _, port = netloc.partition(":")
    failed = loop.create_future()
    head = ("POST / HTTP/1.1", f"Host: {netloc}", f"Content-Type: {CONTENT_TYPE}", f"Content-Length: {len(BODY)}")
    request = "\r\n".join((*head, "", "")).encode() + BODY

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self._transport = transport
            self._parser = HttpResponseParser(self)
            transport.write(request)

        def data_received(self, data: bytes) -> None:
            self._parser.feed_data(data)

        def on_message_complete(self) -> None:
            if (status := self._parser.get_status_code()) != OK:
                failed.set_exception(OSError(f"the service answered {status}"))
            else:
                self._transport.write(request)

        def connection_lost(self, problem: Exception | None) -> None:
            if not failed.done():
                failed.set_exception(problem or OSError("the service has closed a connection"))

    for _ in range(in_flight):
        await loop.create_connection(Connection, host, int(port))
    await failed


def libcurl(url: str, in_flight: int) -> None:
    """Send gRPC messages with libcurl: HTTP/2, its multi interface, no event loop of Python."""
    import pycurl  # type: ignore[import-not-found,import-untyped,unused-ignore]

    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
    # Kept here: a handle that nothing refers to is gone.
    calls = [pycurl.Curl() for _ in range(in_flight)]
    for call in calls:
        call.setopt(pycurl.URL, url)
        call.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
        call.setopt(pycurl.PIPEWAIT, 1)
        call.setopt(pycurl.HTTPHEADER, GRPC_HEADERS)
        call.setopt(pycurl.POSTFIELDS, MESSAGE)
        call.setopt(pycurl.WRITEFUNCTION, len)
        multi.add_handle(call)
    while True:
        multi.perform()
        _, ended, failed = multi.info_read(in_flight)
        for _, code, text in failed:
            raise OSError(f"libcurl: {code}, {text}")
        for call in ended:
            if (status := call.getinfo(pycurl.RESPONSE_CODE)) != OK:
                raise OSError(f"the service answered {status}")
            multi.remove_handle(call)
            multi.add_handle(call)
        if not ended:
            multi.select(WAIT_S)


if __name__ == "__main__":
    name, address, calls_at_once = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if name == "libcurl":
        libcurl(address, calls_at_once)
    else:
        asyncio.run({"aiohttp": aiohttp, "httptools": httptools}[name](address, calls_at_once))
