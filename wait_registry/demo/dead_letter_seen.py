"""A dead letter as an independent consumer sees it."""

from __future__ import annotations

from dataclasses import dataclass

from wait_registry.demo.fingerprint import Fingerprint
from wait_registry.demo.manifest import Coordinates


@dataclass(frozen=True, slots=True)
class DeadLetterSeen:
    """One dead letter, with the original cut out of it; ``time_ms`` is when it was dead-lettered."""

    original: Coordinates
    timestamp_ms: int
    reason: str
    wait_id: str
    registration: tuple[int, int] | None
    time_ms: int
    fingerprint: Fingerprint
