"""Waiting for a condition with a deadline, the only way in which tests wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Patience costs nothing where the condition comes true, and a loaded machine may need it.
PATIENCE_S = 60.0
POLL_S = 0.05


def wait_until(
    condition: Callable[[], T | None],
    deadline_s: float = PATIENCE_S,
    what: str = "the condition",
    poll_s: float = POLL_S,
) -> T:
    """Return the condition's first true value.

    Args:
        condition: called again and again; what it raises ends the wait at once.
        deadline_s: how long it may take, s.
        what: names the condition when it doesn't come true.
        poll_s: pause between two calls, s.

    Raises:
        AssertionError: it did not come true in time; the message has the last value seen.
    """
    deadline = time.monotonic() + deadline_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {deadline_s:g} s; last seen: {value!r}")
        time.sleep(poll_s)
    return value


def holds(condition: Callable[[], bool], for_s: float, what: str, poll_s: float = POLL_S) -> None:
    """Look again and again for a while that something which should not change doesn't.

    Args:
        condition: must be true each time.
        for_s: how long to look, s.
        what: names the condition when it comes out false.
        poll_s: pause between two calls, s.

    Raises:
        AssertionError: it was false.
    """
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert condition(), f"{what} did not hold for {for_s:g} s"
        time.sleep(poll_s)
