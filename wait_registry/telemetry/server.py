"""The HTTP port of a service: /metrics, /health/live and /health/ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from threading import Thread
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from wait_registry.service.health import Health
from wait_registry.service.http_server import listening
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.certificate_ends import expose_certificate_ends
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.metrics import READY

log = logging.getLogger(__name__)

Check = Callable[[], Health]

# Limits for clients that can reach the port: number of connections, size and duration of a request.
MAX_CONNECTIONS = 32
REQUEST_LIMIT_S = 10.0
MAX_HEADERS = 64
MAX_HEADER_BYTES = 1_024
# A check must not block; if one does, the process ends all the same, since the thread is a daemon.
STOP_LIMIT_S = 5.0


class TelemetryServer:
    """Serves metrics and health from a thread of its own.

    ``live`` and ``ready`` are called in that thread at every request: they read what the service knows and must not
    block. Live answers whether the process should be left running, ready whether it does its work now.
    """

    def __init__(
        self,
        host: str,
        port: int,
        registry: MetricsRegistry,
        live: Check,
        ready: Check,
        request_limit_s: float = REQUEST_LIMIT_S,
    ) -> None:
        """Prepare; `start` listens.

        Args:
            host, port: where to listen; port 0 takes a free one.
            registry: what /metrics shows.
            live, ready: what /health/live and /health/ready answer.
            request_limit_s: how long a client may take for its request, and for the answer, s.
        """
        self._address = host, port
        self._registry = registry
        self._checks = {"/health/live": live, "/health/ready": ready}
        self._limit_s = request_limit_s
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = Thread(target=self._run, name="telemetry", daemon=True)
        self._listens: Future[int] = Future()

    def start(self) -> Self:
        """Begin to answer; ``port`` is then the one listened on.

        Raises:
            ConfigurationError: the port is taken, or the address isn't one of this host.
        """
        self._thread.start()
        self.port = self._listens.result()
        return self

    def stop(self) -> None:
        """Stop answering and give the port back."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_LIMIT_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:
            if self._listens.done():
                raise
            self._listens.set_exception(error)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        limits: dict[str, Any] = {
            "keepalive_timeout": self._limit_s,  # counts from the connection on, until its request is complete
            "max_headers": MAX_HEADERS,
            "max_field_size": MAX_HEADER_BYTES,
            "max_line_size": MAX_HEADER_BYTES,
            "lingering_time": 0,
            "access_log": None,
        }
        runner = web.ServerRunner(_Server(self._answer, **limits), shutdown_timeout=STOP_LIMIT_S / 2)
        fix = "Set telemetry.port to a free one (0 takes any) or telemetry.host to an address of this host."
        # Clients beyond the backlog try again in whole seconds; refusing one is quicker.
        backlog = 4 * MAX_CONNECTIONS
        async with listening(runner, *self._address, "metrics and health", fix, backlog) as port:
            self._listens.set_result(port)
            await self._stop.wait()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            response = web.Response(status=405)
        elif request.path == "/metrics":
            response = self._metrics()
        elif (check := self._checks.get(request.path)) is not None:
            response = self._health(request.path, check)
        else:
            response = web.Response(status=404, text="/metrics\n/health/live\n/health/ready\n")
        response.headers["Server"] = "waitreg"
        response.force_close()
        if request.transport is not None:  # a client that doesn't read its answer
            asyncio.get_running_loop().call_later(self._limit_s, request.transport.abort)
        return response

    def _metrics(self) -> web.Response:
        try:
            return web.Response(body=self._registry.expose(), headers={"Content-Type": CONTENT_TYPE_LATEST})
        except Exception:
            log.exception("collecting metrics failed")
            return web.Response(status=500, text="collecting metrics failed; see the log\n")

    def _health(self, path: str, check: Check) -> web.Response:
        try:
            health = check()
        except Exception as error:
            log.exception("%s failed", path)
            health = Health(False, (f"the check itself failed: {type(error).__name__}",))
        body = orjson.dumps({"ok": health.ok, "reasons": health.reasons}) + b"\n"
        return web.Response(status=200 if health.ok else 503, body=body, headers={"Content-Type": "application/json"})


def service_server(
    settings: Settings, service: str, registry: MetricsRegistry, live: Check, ready: Check
) -> TelemetryServer:
    """Return the server of a service, and add the metrics that every service has.

    Args:
        settings: where to listen, and the certificates whose ends are shown.
        service: its name, the label of the metric that says whether it is ready.
        registry: of the service; each of its checks returns `Health.of` the reasons against it.
        live: whether the process should be left running.
        ready: whether it does its work now.
    """
    expose_certificate_ends(registry, settings)
    registry.gauge(READY).labels(service).set_function(lambda: float(ready().ok))
    return TelemetryServer(settings.telemetry.host, settings.telemetry.port, registry, live, ready)


class _Server(web.Server):
    """Makes the connections; their limits are those that it was given."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.Response]], **limits: Any) -> None:
        super().__init__(handler)
        self._limits = limits

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._limits)


class _Connection(web.RequestHandler):
    """One connection; refused at once if there are too many."""

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self._manager is not None
        if len(self._manager.connections) < MAX_CONNECTIONS:
            super().connection_made(transport)
            return
        log.debug("refused a connection: %d are open", MAX_CONNECTIONS)
        assert isinstance(transport, asyncio.Transport)
        transport.abort()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        # aiohttp logs a traceback for each odd request, and names its own and Python's version in the answer.
        log.log(logging.DEBUG if status < 500 else logging.ERROR, "a request failed: %s", message, exc_info=exc)
        response = web.Response(status=status, headers={"Server": "waitreg"})
        response.force_close()
        return response
