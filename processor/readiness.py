"""Whether a processor does its work now; being up is not enough."""

from __future__ import annotations

from processor.handlers.slots import Slots


def not_ready_reasons(draining: bool, joined: bool, slots: Slots | None) -> list[str]:
    """Return why records aren't worked on, as people read it; empty when they are.

    Args:
        draining: the process is about to end.
        joined: the group has assigned partitions, be it none of them.
        slots: those of a handler that can't be cancelled.
    """
    reasons = []
    if draining:
        reasons.append("draining")
    elif not joined:
        reasons.append("no partitions assigned yet")
    if slots is not None and slots.all_blocked:
        reasons.append(f"all {slots.count} slots are blocked by handlers that timed out and have not returned")
    return reasons
