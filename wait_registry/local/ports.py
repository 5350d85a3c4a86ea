"""Free TCP ports on loopback for servers that can't be asked which one they took."""

from __future__ import annotations

import random
import socket

from wait_registry.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
# Below the range from which Linux (32768) and macOS (49152) pick ports of outgoing connections: no other client
# takes one between our look and the server's bind, nor while a fault test has the server down.
LOWEST, HIGHEST = 20_000, 32_000
ATTEMPTS = 200


def is_free(port: int) -> bool:
    """Return whether a server could bind the port on loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_ports(count: int, chooser: random.Random | None = None) -> tuple[int, ...]:
    """Return different free ports.

    Raises:
        ConfigurationError: hardly any port of the range is free; end what holds them.
    """
    chooser = chooser or random.SystemRandom()
    found: list[int] = []
    for _ in range(ATTEMPTS):
        port = chooser.randrange(LOWEST, HIGHEST)
        if port not in found and is_free(port):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise ConfigurationError(f"only {found} of {count} ports were free on {LOOPBACK} between {LOWEST} and {HIGHEST}")
