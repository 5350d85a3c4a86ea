"""TLS in front of a Postgres that has none (the embedded one), so that libpq's own checks of certificates are real."""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any, Self

from tests.support.certificates import Authority, Certificate
from waitreg.local.ports import LOOPBACK

SSL_REQUEST = struct.pack(">ii", 8, 80877103)
# More than a record of TLS has: what is left in OpenSSL's buffer would wake no selector.
READ_BYTES = 65_536


class TlsFront(ThreadingTCPServer):
    """Answers the protocol's SSLRequest with yes, does the handshake, and forwards what comes then, in the clear.

    It has blocking sockets: asyncio closes a connection without the alert that says why it refuses a certificate.

    Args:
        port: of the Postgres on loopback.
        certificate: to show to clients.
        clients: who has signed the clients' certificates; they needn't show any when None.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, certificate: Certificate, clients: Authority | None = None) -> None:
        super().__init__((LOOPBACK, 0), None)  # type: ignore[arg-type]
        self.port: int = self.server_address[1]
        self._target = (LOOPBACK, port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.certificate_file, certificate.key_file)
        if clients is not None:
            self._context.verify_mode = ssl.CERT_OPTIONAL
            self._context.load_verify_locations(clients.certificate_file)

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection."""
        with suppress(OSError):  # a client that doesn't trust us, or that we don't trust, is refused in the handshake
            if request.recv(len(SSL_REQUEST), socket.MSG_WAITALL) == SSL_REQUEST:
                request.sendall(b"S")
                with self._context.wrap_socket(request, server_side=True) as client:
                    self._forward(client)

    def _forward(self, client: ssl.SSLSocket) -> None:
        with socket.create_connection(self._target) as server, DefaultSelector() as both:
            both.register(client, EVENT_READ, (client, server))
            both.register(server, EVENT_READ, (server, client))
            while True:
                for key, _ in both.select():
                    source, target = key.data
                    if not (data := source.recv(READ_BYTES)):
                        return
                    target.sendall(data)
