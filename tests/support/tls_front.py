"""TLS in front of a Postgres that has none (the embedded one), so that libpq's own checks of certificates are real."""

from __future__ import annotations

import asyncio
import ssl
import struct
from contextlib import suppress

from tests.support.certificates import Authority, Certificate
from tests.support.network import Link
from wait_registry.local.ports import LOOPBACK

SSL_REQUEST = struct.pack(">ii", 8, 80877103)


class TlsFront(Link):
    """Answers the protocol's SSLRequest with yes, does the handshake, and forwards what comes then, in the clear.

    Args:
        port: of the Postgres on loopback.
        certificate: to show to clients.
        clients: who has signed the clients' certificates; they needn't show any when None.
    """

    def __init__(self, port: int, certificate: Certificate, clients: Authority | None = None) -> None:
        super().__init__((LOOPBACK, port))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.certificate_file, certificate.key_file)
        if clients is not None:
            self._context.verify_mode = ssl.CERT_OPTIONAL
            self._context.load_verify_locations(clients.certificate_file)

    async def _connect(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        # A client that doesn't trust us leaves in the middle of the handshake.
        with suppress(OSError, EOFError):
            if await client.readexactly(len(SSL_REQUEST)) == SSL_REQUEST:
                to_client.write(b"S")
                await to_client.start_tls(self._context)
                return await super()._connect(client, to_client)
        to_client.close()
        return None
