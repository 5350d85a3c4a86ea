"""TLS in front of a Postgres that has none (the embedded one), so that libpq's own checks of certificates are real."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import suppress

from tests.support.certificates import Authority, Certificate

SSL_REQUEST = struct.pack(">ii", 8, 80877103)


class TlsFront:
    """Answers the protocol's SSLRequest with yes, does the handshake, and forwards what comes then, in the clear.

    Args:
        port: of the Postgres on loopback.
        certificate: to show to clients.
        clients: who has signed the clients' certificates; they needn't show any when None.
    """

    def __init__(self, port: int, certificate: Certificate, clients: Authority | None = None) -> None:
        self._target = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.certificate_file, certificate.key_file)
        if clients is not None:
            self._context.verify_mode = ssl.CERT_OPTIONAL
            self._context.load_verify_locations(clients.certificate_file)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> TlsFront:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        # A client that doesn't trust us leaves in the middle of the handshake.
        with suppress(OSError), plain:
            if plain.recv(len(SSL_REQUEST), socket.MSG_WAITALL) != SSL_REQUEST:
                return
            plain.sendall(b"S")
            with (
                self._context.wrap_socket(plain, server_side=True) as client,
                socket.create_connection(("127.0.0.1", self._target)) as server,
            ):
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join(10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
