"""A local HTTP service with a chosen mixture of latencies and failures: what a processor is tried against.

Which call is slow and which one fails goes by the server's own counter, so that two runs are comparable. Every call
that ends is appended to a log file and counted in /stats.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web

from wait_registry.errors import ConfigurationError
from waitreg.calls import ABORTED, Call, CallLog
from waitreg.latencies import LatencySummary
from waitreg.rotation import parse_duration_s, parse_rotation

OK = 200
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DownstreamOptions:
    """How the service behaves.

    ``mixture``: shares of latencies (``"10%:1s,90%:200ms"``, or one latency). ``failures``: shares of calls that
    answer with an error status (``"1%:503,0.5%:400"``), after their latency; the others answer 200. ``port`` 0 takes
    a free one. ``log``: file to append calls to.
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
        self._latencies = parse_rotation(options.mixture, parse_duration_s)
        self._statuses = parse_rotation(options.failures or str(OK), _parse_status, rest=OK)
        self._resources = ExitStack()
        self._log: CallLog | None = None
        self._runner: web.AppRunner | None = None
        self._started = 0
        self._in_flight = 0
        self._by_status: Counter[int] = Counter()
        self._summary = LatencySummary()
        self.port = options.port

    @property
    def address(self) -> str:
        """Return the URL to POST to."""
        return f"http://{self._options.host}:{self.port}/"

    async def start(self) -> None:
        """Listen; raise ConfigurationError when the port is taken or the log can't be written."""
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_get("/stats", self._answer_stats)
        application.router.add_post("/{path:.*}", self._answer_call)
        # A caller that dies takes its call with it: what it would have done counts as not done.
        self._runner = web.AppRunner(application, handler_cancellation=True, access_log=None)
        try:
            if self._options.log is not None:
                self._log = self._resources.enter_context(CallLog(self._options.log))
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
        """Stop listening, abort what is running, close the log."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._resources.close()

    def stats(self) -> dict[str, Any]:
        """Return what the service measured so far: counts, and latencies in seconds."""
        return {
            "count": self._summary.count,
            "in_flight": self._in_flight,
            "by_status": {str(status): count for status, count in sorted(self._by_status.items())},
            "mean_s": self._summary.mean_s,
            "slowest_s": self._summary.slowest_s,
            **{f"p{percent}_s": self._summary.percentile_s(percent) for percent in (50, 90, 95, 99)},
        }

    async def _answer_stats(self, request: web.Request) -> web.Response:
        return web.json_response(self.stats())

    async def _answer_call(self, request: web.Request) -> web.Response:
        started_s, started_ms = time.monotonic(), time.time_ns() // 1_000_000
        self._started += 1
        number = self._started
        self._in_flight += 1
        status, body = ABORTED, b""
        try:
            body = await request.read()
            latency_s = self._latencies.at(number)
            await asyncio.sleep(max(0.0, started_s + latency_s - time.monotonic()))
            status = self._statuses.at(number)
        finally:
            self._in_flight -= 1
            self._by_status[status] += 1
            self._finish(number, started_ms, started_s, status, body, request.headers)
        return web.Response(status=status)

    def _finish(
        self, number: int, started_ms: int, started_s: float, status: int, body: bytes, headers: Mapping[str, str]
    ) -> None:
        finished_s = time.monotonic()
        if status != ABORTED:
            self._summary.add(finished_s - started_s)
        if self._log is None:
            return
        self._log.append(
            Call(
                number=number,
                started_ms=started_ms,
                finished_ms=time.time_ns() // 1_000_000,
                started_s=started_s,
                finished_s=finished_s,
                wait_id=headers.get("Idempotency-Key"),
                topic=headers.get("X-Waitreg-Topic"),
                partition=_number(headers.get("X-Waitreg-Partition")),
                offset=_number(headers.get("X-Waitreg-Offset")),
                attempt=_number(headers.get("X-Waitreg-Attempt")),
                status=status,
                body_sha256=sha256(body).hexdigest(),
            )
        )


def run_downstream(options: DownstreamOptions, announce: Callable[[str], None] = print) -> None:
    """Serve until SIGINT or SIGTERM; ``announce`` gets the address once it listens. Raises ConfigurationError."""
    asyncio.run(_serve(options, announce))


async def _serve(options: DownstreamOptions, announce: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    downstream = Downstream(options)
    await downstream.start()
    try:
        announce(f"downstream listens on {downstream.address} (POST; GET /stats)")
        await stop.wait()
    finally:
        await downstream.stop()


def _parse_status(text: str) -> int:
    status = int(text)
    if not 200 <= status <= 599:
        raise ValueError(text)
    return status


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None
