"""An HTTPS server that answers every POST with 200 and remembers what it was sent."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.certificates import Certificate
from wait_registry.local.ports import LOOPBACK


class HttpsServer:
    """Serves on a free port of loopback; a context manager.

    Args:
        certificate: to show to clients.
    """

    def __init__(self, certificate: Certificate) -> None:
        self.received: list[bytes] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate_file, certificate.key_file)
        self._server = _Quiet((LOOPBACK, 0), _handler(self.received))
        # The handshake is done by the thread of its connection: who leaves in the middle holds up nobody.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> HttpsServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that doesn't trust us."""


def _handler(received: list[bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing to the test's output."""

    return Handler
