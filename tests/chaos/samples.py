"""How much memory the services of a run take, looked at again and again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from tests.chaos.companion import Companion
from tests.chaos.service import Service

LOOK_S = 1.0
# A service may be away for much of a run, and a look may take its time; fewer say nothing about the most it held.
LEAST_SHARE, LEAST = 0.2, 3


class Samples(Companion):
    """Looks in a thread of its own; a context manager. ``taken``: (ms, name, pid, bytes) of each look and service."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        super().__init__("samples", LOOK_S, self._look)
        self._began_s = self._lasted_s = 0.0
        self.taken: list[tuple[int, str, int, int]] = []

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        super().__exit__(kind, *of_no_interest)
        self._lasted_s = time.monotonic() - self._began_s

    def missing(self) -> str:
        """Say whose memory was hardly looked at; empty when nobody's. It has ended."""
        return hardly_seen((service.name for service in self._services), self.taken, self._lasted_s)

    def _look(self) -> None:
        for service in self._services:
            tree = service.tree()
            if tree:
                at_ms = time.time_ns() // 1_000_000
                self.taken.append((at_ms, service.name, tree[0].pid, service.resident_bytes()))


def hardly_seen(names: Iterable[str], taken: Iterable[tuple[int, str, int, int]], lasted_s: float) -> str:
    """Say of which services there are too few samples for the time that it lasted; empty when of none."""
    count = Counter(name for _, name, _, _ in taken)
    least = max(LEAST, LEAST_SHARE * lasted_s / LOOK_S)
    return "; ".join(
        f"the memory of {name} was looked at {count[name]} times in {lasted_s:.0f} s"
        for name in names
        if count[name] < least
    )
