"""A port that no other run on this machine takes, while the process that is to listen at it is still to come."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

from wait_registry.local.ports import LOOPBACK, LOWEST, is_free

# Below the ports that servers of stacks get. Each has a second one, which is ours as long as it is bound: a service
# needs its port only some seconds after it was chosen, and again whenever it is started again.
FIRST, COUNT = 10_000, (LOWEST - 10_000) // 2
ATTEMPTS = 200


class HeldPort:
    """One port; `release` gives it to others."""

    def __init__(self) -> None:
        """Choose one; RuntimeError when hardly any is free."""
        self.number, self._guard = _choose()

    def release(self) -> None:
        """Let others have it. May be called again."""
        self._guard.close()


def _choose() -> tuple[int, socket.socket]:
    chooser = random.SystemRandom()
    for _ in range(ATTEMPTS):
        port = chooser.randrange(FIRST, FIRST + COUNT)
        guard = socket.socket()
        with suppress(OSError):
            guard.bind((LOOPBACK, port + COUNT))
            if is_free(port):
                return port, guard
        guard.close()
    raise RuntimeError(f"none of {ATTEMPTS} ports from {FIRST} on was free on {LOOPBACK}")
