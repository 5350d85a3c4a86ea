"""What systemd or Kubernetes would do: a service that ends by itself is started again a second later."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from tests.chaos.service import Service

LOOK_S = 0.1
PAUSE_S = 1.0


class Supervisor:
    """Watches services in a thread of its own; a context manager."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._due: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def __enter__(self) -> Supervisor:
        self._thread.start()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.end()

    def end(self) -> None:
        """Start nothing any more. May be called again."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
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
