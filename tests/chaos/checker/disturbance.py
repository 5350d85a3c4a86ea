"""Which faults explain what would otherwise be a broken promise, by what they hit and when; never by their names."""

from __future__ import annotations

from collections.abc import Iterable

from tests.chaos.history.history import FaultDone


def hits(fault: FaultDone, *kinds: str) -> bool:
    """Return whether a fault hits one of these: "processor" stands for "processor-1" too."""
    return any(fault.target == kind or fault.target.startswith(f"{kind}-") for kind in kinds)


def overlaps(fault: FaultDone, from_ms: int, to_ms: int, aftermath_ms: int = 0) -> bool:
    """Return whether a fault, with what follows from it for a while, has a moment in common with a period."""
    return fault.began_ms <= to_ms and fault.ended_ms + aftermath_ms >= from_ms


def earlier(moment_ms: int, active_ms: int, pauses: Iterable[FaultDone]) -> int:
    """Return the moment since which ``active_ms`` have gone by, not counting pauses.

    Who decided something at ``moment_ms`` by what it had read up to ``active_ms`` before, and stood still in between,
    read it that much earlier.
    """
    for pause in sorted(pauses, key=lambda pause: pause.ended_ms, reverse=True):
        if pause.began_ms >= moment_ms:
            continue
        active_since_ms = min(pause.ended_ms, moment_ms)
        if moment_ms - active_since_ms >= active_ms:
            break
        active_ms -= moment_ms - active_since_ms
        moment_ms = pause.began_ms
    return moment_ms - active_ms
