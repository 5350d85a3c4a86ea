"""Which faults explain what would otherwise be a violation: by their target and time, and whether it survived them."""

from __future__ import annotations

from collections.abc import Iterable

from tests.chaos.history.history import FaultDone

# What follows from a fault that is over: clients wait up to this long before they connect again, partitions are on
# their way to another member.
AFTERMATH_MS = 10_000
# Faults of these stop the broker.
BROKER = ("broker", "everything")
# After these a process does nothing more, late or not; the next one of its name is another instance.
_ENDS = ("kill", "terminate", "rewind", "commit_back", "commit_forward", "pass_retries")
# A sweeper whose session with Postgres is reset starts its sweep again.
_RESETS = ("cut_postgres_link", "refuse_postgres_link")
# A processor may feel the faults of these: "group" is all planned processors or, in a storm, its members.
PROCESSORS = ("processor", "visitor", "group", "everything")


def hits(fault: FaultDone, *kinds: str) -> bool:
    """Return whether a fault hits one of these: "processor" includes "processor-1"."""
    return any(fault.target == kind or fault.target.startswith(f"{kind}-") for kind in kinds)


def is_of(fault: FaultDone, instance: str) -> bool:
    """Return whether a fault hits the process that registered as this instance, or its link.

    "processor-1/2" is the second start of processor-1. If an instance names no service of the run, every fault of any
    processor may be its own. A storm ends its members and no planned processor; every other fault of the group, or of
    everything, hits the planned ones.
    """
    service = instance.rpartition("/")[0]
    kind = service.partition("-")[0]
    if kind not in ("processor", "visitor"):
        return hits(fault, *PROCESSORS)
    if fault.target in ("group", "everything"):
        return kind == ("visitor" if fault.name == "storm" else "processor")
    return fault.target == service


def explains(fault: FaultDone, instances: Iterable[str], from_ms: int, to_ms: int) -> bool:
    """Return whether a fault explains what one of these instances did late, or didn't do, in a period."""
    if hits(fault, *BROKER):
        return overlaps(fault, from_ms, to_ms, AFTERMATH_MS)
    aftermath_ms = 0 if fault.name in _ENDS else AFTERMATH_MS
    return any(is_of(fault, one) for one in instances) and overlaps(fault, from_ms, to_ms, aftermath_ms)


def pauses_exports(fault: FaultDone) -> bool:
    """Return whether an export may have stalled meanwhile, and continued by what it knew.

    A sweeper that is killed or ended forgets what it has read. The log doesn't show which of two sweepers wrote an
    export, so a pause of either counts.
    """
    if hits(fault, "sweeper"):
        return fault.name not in (*_ENDS, *_RESETS)
    return hits(fault, "postgres", "broker")


def overlaps(fault: FaultDone, from_ms: int, to_ms: int, aftermath_ms: int = 0) -> bool:
    """Return whether a fault with its aftermath has a moment in common with a period."""
    return fault.began_ms <= to_ms and fault.ended_ms + aftermath_ms >= from_ms


def earlier(moment_ms: int, active_ms: int, pauses: Iterable[FaultDone]) -> int:
    """Return the moment since which ``active_ms`` have passed, not counting pauses.

    A sweeper that decided at ``moment_ms`` by what it had read ``active_ms`` before, and stalled in between, read it
    that much earlier.
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
