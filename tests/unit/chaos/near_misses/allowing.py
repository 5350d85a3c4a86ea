"""How a near miss is played into the script of a clean run."""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.history.history import History
from tests.unit.chaos.script import Script

NEAR_MISSES: list[tuple[str, Callable[[Script], History]]] = []


def allowed(name: str) -> Callable[[Callable[[Script], History]], None]:
    """Add a near miss to the list."""
    return lambda play: NEAR_MISSES.append((name, play))
