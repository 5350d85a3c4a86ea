"""The HTTP port of a service: /metrics, /health/live and /health/ready."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
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


class TelemetryServer:
    """Serves metrics and health from a thread of its own.

    ``live`` and ``ready`` are called in that thread at every request: they read what the service knows and must not
    block. Live answers whether the process should be left running, ready whether it does its work now.
    """

    def __init__(self, host: str, port: int, registry: MetricsRegistry, live: Check, ready: Check) -> None:
        """Take the port at once.

        Args:
            host, port: where to listen; port 0 takes a free one.
            registry: what /metrics shows.
            live, ready: what /health/live and /health/ready answer.

        Raises:
            ConfigurationError: the port is taken or the address isn't ours.
        """
        routes = {"/health/live": live, "/health/ready": ready}
        handler = type("TelemetryRequest", (_Request,), {"registry": registry, "checks": routes})
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what a request ended with; a client that has gone (a scrape over its time) is no trouble of ours."""
        if isinstance(sys.exception(), ConnectionError):
            log.debug("%s has hung up before its answer", client_address)
        else:
            log.exception("a request of %s failed", client_address)


class _Request(BaseHTTPRequestHandler):
    registry: MetricsRegistry
    checks: dict[str, Check]
    timeout = 10  # a client that sends nothing must not hold a thread for ever

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
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)
