"""Whether a run says anything: its faults happened, and there is evidence to judge by."""

from __future__ import annotations

from tests.chaos.history.history import History


def void(history: History) -> str:
    """Return why nothing can be concluded from a run; empty when something can."""
    reasons = [
        f"no proof that the fault {fault.name} of {fault.target} happened"
        for fault in history.faults
        if not fault.happened
    ]
    if not history.published:
        reasons.append("no record was published")
    if not history.looks:
        reasons.append("nobody looked at the commits while it went on")
    return "; ".join(reasons)
