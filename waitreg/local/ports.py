"""Free TCP ports on loopback for servers that can't be asked which one they took."""

from __future__ import annotations

import random
import socket
from collections import deque

from wait_registry.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
# Below the range from which Linux (32768) and macOS (49152) pick ports of outgoing connections: no other client
# takes one between our look and the server's bind, nor while a fault test has the server down.
LOWEST, HIGHEST = 20_000, 32_000
ATTEMPTS = 200
_chooser = random.SystemRandom()
# The sockets that hold the ports returned last; a bounded number, since each is an open file.
_held: deque[socket.socket] = deque(maxlen=ATTEMPTS)


def is_free(port: int) -> bool:
    """Return whether a server could bind the port on loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> tuple[int, ...]:
    """Return different free ports, and hold them: a service may bind its port many seconds later.

    Until this process ends, no other call returns a held port, in this process or another. A server binds it all the
    same if it sets SO_REUSEADDR, as servers do.

    Raises:
        ConfigurationError: hardly any port of the range is free; end what holds them.
    """
    found: list[int] = []
    for _ in range(ATTEMPTS):
        port = _chooser.randrange(LOWEST, HIGHEST)
        if _hold(port):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise ConfigurationError(f"only {found} of {count} ports were free on {LOOPBACK} between {LOWEST} and {HIGHEST}")


def _hold(port: int) -> bool:
    """Bind the port and don't listen; return False if it is held or a server has it."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.bind((LOOPBACK, port))
    except OSError:
        holder.close()
        return False
    # Only now: with this option the bind would have succeeded on a port that another process holds.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _held.append(holder)
    return True
