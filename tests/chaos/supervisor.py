"""What systemd or Kubernetes would do: a service that ends by itself is started again a second later."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.chaos.companion import Companion
from tests.chaos.service import Service

LOOK_S = 0.1
PAUSE_S = 1.0


class Supervisor(Companion):
    """Watches services in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._due: dict[str, float] = {}
        super().__init__("supervisor", LOOK_S, self._look)

    def _look(self) -> None:
        for service in self._services:
            if service.lock.acquire(blocking=False):
                try:
                    self._look_at(service)
                finally:
                    service.lock.release()

    def _look_at(self, service: Service) -> None:
        if service.notice_end() is not None:
            self._due[service.name] = time.monotonic() + PAUSE_S
        elif service.running:
            self._due.pop(service.name, None)
        elif time.monotonic() >= self._due.get(service.name, float("inf")):
            service.start()
