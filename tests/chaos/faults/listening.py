"""Whether anybody listens at a port, the proof that a server is gone."""

from __future__ import annotations

import socket

from wait_registry.local.ports import LOOPBACK

TIMEOUT_S = 2.0


def listens(port: int) -> bool:
    """Return whether a connection is accepted."""
    try:
        socket.create_connection((LOOPBACK, port), TIMEOUT_S).close()
    except OSError:
        return False
    return True
