"""How much memory the services of a run take, looked at again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from tests.chaos.service import Service

LOOK_S = 1.0


class Samples:
    """Looks in a thread of its own; a context manager. ``taken``: (ms, name, pid, bytes) of each look and service."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="samples", daemon=True)
        self.taken: list[tuple[int, str, int, int]] = []

    def __enter__(self) -> Samples:
        self._thread.start()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            for service in self._services:
                tree = service.tree()
                if tree:
                    at_ms = time.time_ns() // 1_000_000
                    self.taken.append((at_ms, service.name, tree[0].pid, service.resident_bytes()))
