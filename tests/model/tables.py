"""The tables of docs/protocol-model.md: what was explored, and what each safeguard is for."""

from __future__ import annotations

from functools import cache

from tests.model.explorer import NEVER_ENDS, Explored, Model, explore
from tests.model.safeguards import Safeguard

MOST_STATES = 10_000_000


@cache
def explored(model: Model) -> Explored:
    """Explore a model once a process."""
    return explore(model, MOST_STATES)


def design_row(model: Model) -> str:
    """Return the line of a slice."""
    found = explored(model)
    return f"| {model.name} | {found.states:,} | {found.steps:,} | {found.depth} |"


def safeguard_row(safeguard: Safeguard) -> str:
    """Return the line of a safeguard: what breaks first without it, and after how many steps."""
    violation = explored(safeguard.without).violation
    what = f"| `{safeguard.name}` | {safeguard.keeps} | {safeguard.clause} |"
    if violation is None:
        return f"{what} nothing |"
    promise = "never ends" if violation.broken == NEVER_ENDS else violation.broken[:2]
    return f"{what} {promise}, {len(violation.story)} steps |"
