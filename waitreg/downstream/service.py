"""A local HTTP service with a chosen mixture of latencies and failures: what a processor is tried against.

The server's own counter decides which call is slow and which one fails, so that two runs are comparable. Every call
that ends is appended to a log file and counted in /stats. Beyond the capacity calls wait for their turn. Mixture and
capacity can be changed while the server runs.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wait_registry.errors import ConfigurationError
from wait_registry.service.http_server import listening
from waitreg.downstream.calls import ABORTED, Call
from waitreg.downstream.capacity import Capacity
from waitreg.downstream.mixture import DROPPED, parse_latency, parse_rotation, parse_status
from waitreg.load.json_lines import JsonLines

MAX_BODY_BYTES = 64 * 1024 * 1024
STOP_S = 0.5  # how long the end waits for calls that still run, or hang


class Change(BaseModel):
    """The body of POST /mixture; what is absent stays."""

    model_config = ConfigDict(extra="forbid", strict=True)

    mixture: str | None = None
    fail: str | None = None
    capacity: int | None = Field(None, ge=0)


class Downstream:
    """The service; started and stopped within a running event loop."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        mixture: str = "10%:1s,90%:200ms",
        failures: str = "",
        log: Path | None = None,
        capacity: int = 0,
    ) -> None:
        """Take how the service behaves.

        Args:
            host: address to listen on.
            port: 0 takes a free one.
            mixture: shares of latencies (``"10%:1s-5s,1%:hang,89%:200ms"``, or one latency).
            failures: shares of calls that fail after their latency (``"1%:503,0.5%:drop"``); the others answer 200.
            log: file to append calls to.
            capacity: calls that are served at once, the others wait; 0 serves all.

        Raises:
            ConfigurationError: quotes what can't be read.
        """
        self.host, self.port = host, port
        self._capacity = Capacity()
        self._behave(mixture, failures, capacity)
        self._log_file = log
        self._log: JsonLines | None = None
        self._held = AsyncExitStack()
        self._started = 0
        self._in_flight = 0
        self._by_status: Counter[int] = Counter()

    @property
    def address(self) -> str:
        """Return the URL to POST to."""
        return f"http://{self.host}:{self.port}/"

    async def start(self) -> None:
        """Listen; raise ConfigurationError when the port is taken or the log can't be written."""
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_get("/stats", self._answer_stats)
        application.router.add_post("/mixture", self._change_mixture)
        application.router.add_post("/{path:.*}", self._answer_call)
        # When a caller dies its call ends with it, and its work counts as not done.
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=STOP_S)
        if self._log_file is not None:
            try:
                self._log = JsonLines(self._log_file)
            except OSError as error:
                raise ConfigurationError(
                    f"the downstream can't write its log: {error}; choose another --log"
                ) from error
            self._held.callback(self._log.close)
        fix = "Choose another --port (0 takes a free one)."
        try:
            serving = listening(runner, self.host, self.port, "the downstream", fix, backlog=1024)
            self.port = await self._held.enter_async_context(serving)
        except ConfigurationError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop listening, abort running calls, close the log."""
        await self._held.aclose()

    def stats(self) -> dict[str, Any]:
        """Return how many calls got an answer, run now, and ended with each status (0: dropped, 499: hung up)."""
        return {
            "count": sum(self._by_status.values()) - self._by_status[ABORTED] - self._by_status[DROPPED],
            "in_flight": self._in_flight,
            "by_status": {str(status): count for status, count in sorted(self._by_status.items()) if count},
        }

    async def _answer_stats(self, _: web.Request) -> web.Response:
        return web.json_response(self.stats())

    async def _change_mixture(self, request: web.Request) -> web.Response:
        try:
            change = Change.model_validate_json(await request.read())
            self._behave(**{**self._wanted, **change.model_dump(exclude_none=True)})
        except (ConfigurationError, ValidationError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(self._wanted)

    def _behave(self, mixture: str, fail: str, capacity: int) -> None:
        latencies = parse_rotation(mixture, parse_latency)
        self._statuses = parse_rotation(fail or "200", parse_status, rest=200)
        self._capacity.change(capacity)
        self._latencies = latencies
        self._wanted: dict[str, Any] = {"mixture": mixture, "fail": fail, "capacity": capacity}

    async def _answer_call(self, request: web.Request) -> web.Response:
        started_s, started_ms = time.monotonic(), _now_ms()
        self._started += 1
        number, latencies, statuses = self._started, self._latencies, self._statuses
        self._in_flight += 1
        status, body = ABORTED, b""
        try:
            body = await request.read()
            began_s = time.monotonic()
            async with self._capacity:
                waited_s = time.monotonic() - began_s
                ends_s = started_s + waited_s + latencies.at(number).of_call(number)
                await asyncio.sleep(ends_s - time.monotonic())
            status = statuses.at(number)
        finally:
            self._in_flight -= 1
            self._by_status[status] += 1
            self._finish(number, started_ms, started_s, status, body, request)
        if status == DROPPED and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 500)

    def _finish(
        self, number: int, started_ms: int, started_s: float, status: int, body: bytes, request: web.Request
    ) -> None:
        if self._log is None:
            return
        headers = request.headers
        self._log.append(
            Call(
                number=number,
                started_ms=started_ms,
                finished_ms=_now_ms(),
                started_s=started_s,
                finished_s=time.monotonic(),
                wait_id=headers.get("X-Waitreg-Wait-Id"),
                topic=headers.get("X-Waitreg-Topic"),
                partition=_number(headers.get("X-Waitreg-Partition")),
                offset=_number(headers.get("X-Waitreg-Offset")),
                delivery=_number(headers.get("X-Waitreg-Delivery")),
                status=status,
                body_sha256=sha256(body).hexdigest(),
                idempotency_key=headers.get("Idempotency-Key"),
                path=request.path[1:],
            )
        )


async def serve(downstream: Downstream) -> None:
    """Serve until SIGINT or SIGTERM, and print the address once it listens. Raises ConfigurationError."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await downstream.start()
    try:
        print(f"downstream listens on {downstream.address} (POST; GET /stats; POST /mixture changes it)", flush=True)
        await stop.wait()
    finally:
        await downstream.stop()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None
