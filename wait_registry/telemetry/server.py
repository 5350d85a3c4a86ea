"""The HTTP port of a service: /metrics, /health/live and /health/ready."""

from __future__ import annotations

import io
import logging
import socket
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any, Self

import orjson
from prometheus_client import CONTENT_TYPE_LATEST

from wait_registry.errors import ConfigurationError
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.health import Health

__all__ = ["Health", "TelemetryServer"]

log = logging.getLogger(__name__)

Check = Callable[[], Health]

# Whoever can reach the port must not be able to fill the process: a thread each for so many connections, for so long.
MAX_CONNECTIONS = 32
REQUEST_LIMIT_S = 10.0
MAX_REQUEST_BYTES = 65_536


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
        """Take the port at once.

        Args:
            host, port: where to listen; port 0 takes a free one.
            registry: what /metrics shows.
            live, ready: what /health/live and /health/ready answer.
            request_limit_s: how long a client may take for its request, and for the answer, s.

        Raises:
            ConfigurationError: the port is taken or the address isn't ours.
        """
        routes = {"/health/live": live, "/health/ready": ready}
        handler = type(
            "TelemetryRequest", (_Request,), {"registry": registry, "checks": routes, "limit_s": request_limit_s}
        )
        try:
            self._server = _Server((host, port), handler)
        except OSError as error:
            raise ConfigurationError(
                f"can't listen on {host}:{port} for metrics and health: {error.strerror or error}. "
                "Set telemetry.port to a free one (0 takes any) or telemetry.host to an address of this host."
            ) from error
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The port listened on."""
        return int(self._server.server_address[1])

    def start(self) -> Self:
        """Begin to answer."""
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), name="telemetry", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop answering and give the port back."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A second service on the same port must fail, not share it.
    allow_reuse_port = False
    # Beyond it clients try again in whole seconds; turning one away is quicker.
    request_queue_size = 4 * MAX_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._room = BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; one connection too many is closed at once."""
        if not self._room.acquire(blocking=False):
            log.debug("%s turned away: %d connections are open", client_address, MAX_CONNECTIONS)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what a request ended with; a client that has gone (a scrape over its time) is no trouble of ours."""
        if isinstance(sys.exception(), ConnectionError):
            log.debug("%s has hung up before its answer", client_address)
        else:
            log.exception("a request of %s failed", client_address)


class _Incoming(io.RawIOBase):
    """What a client sends within a time and a size, both of the whole request: a byte now and then extends neither."""

    def __init__(self, connection: socket.socket, limit_s: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + limit_s
        self._left = MAX_REQUEST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request isn't whole in time")
        self._connection.settimeout(left_s)
        taken = self._connection.recv_into(buffer, min(len(buffer), self._left)) if self._left else 0
        self._left -= taken
        return taken


class _Request(BaseHTTPRequestHandler):
    registry: MetricsRegistry
    checks: dict[str, Check]
    limit_s = REQUEST_LIMIT_S
    server_version = "waitreg"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Incoming(self.connection, self.limit_s))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif path in self.checks:
            self._health(path, self.checks[path])
        else:
            self._answer(404, "text/plain; charset=utf-8", b"/metrics\n/health/live\n/health/ready\n")

    def _metrics(self) -> None:
        try:
            text = self.registry.expose()
        except Exception:
            log.exception("collecting metrics failed")
            self._answer(500, "text/plain; charset=utf-8", b"collecting metrics failed; see the log\n")
            return
        self._answer(200, CONTENT_TYPE_LATEST, text)

    def _health(self, path: str, check: Check) -> None:
        try:
            health = check()
        except Exception as error:
            log.exception("%s failed", path)
            health = Health(False, (f"the check itself failed: {type(error).__name__}",))
        body = orjson.dumps({"ok": health.ok, "reasons": health.reasons}) + b"\n"
        self._answer(200 if health.ok else 503, "application/json", body)

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.connection.settimeout(self.limit_s)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)
