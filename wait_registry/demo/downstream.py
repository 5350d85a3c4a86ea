"""A local HTTP service with a chosen mixture of latencies and failures: what a processor is tried against.

The server's own counter decides which call is slow and which one fails, so that two runs are comparable. Every call
that ends is appended to a log file and counted in /stats. The mixture can be changed while the server runs.
"""

from __future__ import annotations

import asyncio
import json
import math
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web

from wait_registry.demo.calls import ABORTED, Call
from wait_registry.demo.json_lines import JsonLines
from wait_registry.demo.mixture import DROPPED, Behaviour
from wait_registry.errors import ConfigurationError

MAX_BODY_BYTES = 64 * 1024 * 1024
STOP_S = 0.5  # how long the end waits for calls that still run, or hang


@dataclass(frozen=True, slots=True)
class DownstreamOptions:
    """How the service behaves.

    ``mixture``: shares of latencies (``"10%:1s-5s,1%:hang,89%:200ms"``, or one latency). ``failures``: shares of calls
    that fail after their latency (``"1%:503,0.5%:drop"``); the others answer 200. ``port`` 0 takes a free one. ``log``:
    file to append calls to.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    mixture: str = "10%:1s,90%:200ms"
    failures: str = ""
    log: Path | None = None


class Downstream:
    """The service; started and stopped within a running event loop."""

    def __init__(self, options: DownstreamOptions) -> None:
        """Check the options; raise ConfigurationError that quotes what can't be read."""
        self._options = options
        self._behaviour = Behaviour.read(options.mixture, options.failures)
        self._resources = ExitStack()
        self._log: JsonLines | None = None
        self._runner: web.AppRunner | None = None
        self._started = 0
        self._in_flight = 0
        self._by_status: Counter[int] = Counter()
        self._count, self._total_s, self._slowest_s = 0, 0.0, 0.0
        self.port = options.port

    @property
    def address(self) -> str:
        """Return the URL to POST to."""
        return f"http://{self._options.host}:{self.port}/"

    async def start(self) -> None:
        """Listen; raise ConfigurationError when the port is taken or the log can't be written."""
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_get("/stats", self._answer_stats)
        application.router.add_post("/mixture", self._change_mixture)
        application.router.add_post("/{path:.*}", self._answer_call)
        # When a caller dies its call ends with it, and its work counts as not done.
        self._runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=STOP_S)
        try:
            if self._options.log is not None:
                self._log = self._resources.enter_context(JsonLines(self._options.log))
            await self._runner.setup()
            await web.TCPSite(self._runner, self._options.host, self._options.port, backlog=1024).start()
        except OSError as error:
            await self.stop()
            raise ConfigurationError(
                f"the downstream can't start on {self._options.host}:{self._options.port}: {error}; "
                "choose another --port (0 takes a free one) or --log"
            ) from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening, abort running calls, close the log."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._resources.close()

    def stats(self) -> dict[str, Any]:
        """Return counts, and latencies in seconds."""
        return {
            "count": self._count,
            "in_flight": self._in_flight,
            "by_status": {str(status): count for status, count in sorted(self._by_status.items()) if status != DROPPED},
            "dropped": self._by_status[DROPPED],
            "mean_s": self._total_s / self._count if self._count else 0.0,
            "slowest_s": self._slowest_s,
        }

    async def _answer_stats(self, _: web.Request) -> web.Response:
        return web.json_response(self.stats())

    async def _change_mixture(self, request: web.Request) -> web.Response:
        try:
            now = {"mixture": self._behaviour.mixture, "fail": self._behaviour.failures}
            wanted = {**now, **_wanted(await request.text())}
            self._behaviour = Behaviour.read(wanted["mixture"], wanted["fail"])
        except (ConfigurationError, UnicodeDecodeError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(wanted)

    async def _answer_call(self, request: web.Request) -> web.Response:
        started_s, started_ms = time.monotonic(), _now_ms()
        self._started += 1
        number, behaviour = self._started, self._behaviour
        self._in_flight += 1
        status, body = ABORTED, b""
        try:
            body = await request.read()
            await _wait_until(started_s + behaviour.latencies.at(number).of_call(number))
            status = behaviour.statuses.at(number)
        finally:
            self._in_flight -= 1
            self._by_status[status] += 1
            self._finish(number, started_ms, started_s, status, body, request.headers)
        if status == DROPPED and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 500)

    def _finish(
        self, number: int, started_ms: int, started_s: float, status: int, body: bytes, headers: Mapping[str, str]
    ) -> None:
        finished_s = time.monotonic()
        if status not in (ABORTED, DROPPED):
            self._count += 1
            self._total_s += finished_s - started_s
            self._slowest_s = max(self._slowest_s, finished_s - started_s)
        if self._log is None:
            return
        self._log.append(
            Call(
                number=number,
                started_ms=started_ms,
                finished_ms=_now_ms(),
                started_s=started_s,
                finished_s=finished_s,
                wait_id=headers.get("Idempotency-Key"),
                topic=headers.get("X-Waitreg-Topic"),
                partition=_number(headers.get("X-Waitreg-Partition")),
                offset=_number(headers.get("X-Waitreg-Offset")),
                delivery=_number(headers.get("X-Waitreg-Delivery")),
                status=status,
                body_sha256=sha256(body).hexdigest(),
            )
        )


def run_downstream(options: DownstreamOptions) -> None:
    """Serve until SIGINT or SIGTERM, and print the address once it listens. Raises ConfigurationError."""
    asyncio.run(_serve(options))


async def _serve(options: DownstreamOptions) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    downstream = Downstream(options)
    await downstream.start()
    try:
        print(f"downstream listens on {downstream.address} (POST; GET /stats; POST /mixture changes it)", flush=True)
        await stop.wait()
    finally:
        await downstream.stop()


async def _wait_until(moment_s: float) -> None:
    """Return at this time of the monotonic clock; never when it is infinite."""
    if math.isinf(moment_s):
        await asyncio.Event().wait()
    await asyncio.sleep(max(0.0, moment_s - time.monotonic()))


def _wanted(text: str) -> dict[str, str]:
    """Read the body of POST /mixture: JSON with "mixture", "fail" or both."""
    try:
        given: dict[str, str] = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"can't read the JSON: {error}") from error
    if (
        not isinstance(given, dict)
        or not given.keys() <= {"mixture", "fail"}
        or not all(isinstance(part, str) for part in given.values())
    ):
        raise ConfigurationError('expected {"mixture": "10%:1s,90%:200ms", "fail": "1%:503"}, or one of the two')
    return given


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None
