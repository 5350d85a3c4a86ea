"""What the faults of a run act on."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.schedule import PlannedFault, Schedule
from tests.chaos.service import Service
from tests.chaos.stage import Place, Stage


@dataclass(frozen=True, slots=True)
class Scene:
    """A run that is going on. Faults of one target come one after the other, by its lock: see `lock`."""

    stage: Stage
    place: Place
    schedule: Schedule
    services: Mapping[str, Service]
    """By name; the visitors of a storm are not among them."""
    downstream: Service
    visitor: Callable[[], Service]
    """Makes one more processor, which nobody supervises."""
    visitors: Sequence[Service]
    """All that were made so far."""
    ended: threading.Event
    """Set when the run is broken off: whoever waits goes on at once."""
    locks: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    began_ms: dict[PlannedFault, int] = field(default_factory=dict)
    """When each fault really began, ms since the epoch."""

    def begins(self, fault: PlannedFault) -> None:
        """Note that a fault begins: it has its victim, and nothing was done to that yet. The first word counts."""
        self.began_ms.setdefault(fault, time.time_ns() // 1_000_000)

    def pause(self, seconds: float) -> None:
        """Let the fault last."""
        self.ended.wait(seconds)
