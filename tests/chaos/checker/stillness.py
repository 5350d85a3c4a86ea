"""When the machine, or the broker, stood still: nobody could look then, who looks many times a second otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.chaos.history.look import Look

# On two busy cores a look takes half a second. A processor has a margin of two.
LONGEST_LOOK_MS = 1_500


def stood_still_ms(looks: Sequence[Look], from_ms: int, to_ms: int) -> int:
    """Return for how much of a period nothing was seen, ms; pauses between looks that are as usual don't count.

    Whoever works beside those who look may have stood still as long, with no fault of its own.

    Args:
        looks: in their order; before the first and after the last nobody meant to look.
        from_ms: when the period begins.
        to_ms: when it ends.
    """
    pauses = ((before.ended_ms, later.ended_ms) for before, later in pairwise(looks))
    return sum(
        max(0, min(until_ms, to_ms) - max(since_ms, from_ms))
        for since_ms, until_ms in pauses
        if until_ms - since_ms > LONGEST_LOOK_MS
    )
