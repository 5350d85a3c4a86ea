"""A real HTTP service whose answers the test writes; it remembers every call."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Call:
    """One request: ``attempt`` counts the calls with the same path and idempotency key from 1."""

    path: str
    headers: dict[str, str]
    body: bytes
    delivery: int
    method: str

    @property
    def idempotency_key(self) -> str:
        """The header of that name; empty when there is none."""
        return self.headers.get("Idempotency-Key", "")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service says, bytes or JSON; ``held_back``: only when the service ends and no caller waits any more.

    ``location`` is where a redirection leads; ``cut`` ends the connection instead of an answer.
    """

    status: int = 200
    body: object = None
    held_back: bool = False
    location: str = ""
    cut: bool = False


class HttpService:
    """Serves on loopback in a thread of its own.

    Args:
        answer: called in that thread, one call after another.
        tls: serves HTTPS with it when given.
    """

    def __init__(self, answer: Callable[[Call], Answer], tls: ssl.SSLContext | None = None) -> None:
        self.calls: list[Call] = []
        self._tls = tls
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._runner: web.AppRunner | None = None
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-service", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it; callers that still wait get their answers."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    @property
    def address(self) -> str:
        """Where it is, without a path."""
        assert self._runner is not None
        host, port = self._runner.addresses[0][:2]
        return f"{'https' if self._tls else 'http'}://{host}:{port}"

    async def _start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._serve)
        # A caller that gives up doesn't end what it asked for: the work is done, only the answer is lost.
        self._runner = web.AppRunner(application, handler_cancellation=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()

    async def _end(self) -> None:
        assert self._runner is not None
        self._ending.set()
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = dict(request.headers)
        key = headers.get("Idempotency-Key", "")
        path = request.rel_url.raw_path
        before = sum(call.path == path and call.idempotency_key == key for call in self.calls)
        call = Call(path, headers, body, before + 1, request.method)
        self.calls.append(call)
        answer = self._answer(call)
        if answer.held_back:
            await self._ending.wait()
        if answer.cut and request.transport is not None:
            request.transport.abort()
        headers = {"Location": answer.location} if answer.location else {}
        if isinstance(answer.body, bytes):
            return web.Response(body=answer.body, status=answer.status, headers=headers)
        return web.json_response(answer.body, status=answer.status, headers=headers)
