"""The records of a run: each of a kind that is drawn by shares, the same for the same seed and index."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from waitreg.load.orders import Order, order
from waitreg.load.shapes import SHAPES, Maker

# How much larger than a registration an input record may be: what lies between is consumed and can't be registered. A
# dead letter of it must find room in its topic, which takes some 130 kB more than a registration.
BEYOND_BYTES = 90_000
# Room for headers, their JSON and the batch around them.
ROOM_BYTES = 6_000
# Shares of a registration.
BULKY = (0.025, 0.25)
# Timestamps that a producer sets are around the present one, by less than a broker takes of those in the future.
FROM_MS, TO_MS = -86_400_000, 1_800_000
# Keys, values and headers of the others on the average, rounded up.
MEAN_BYTES = {"orders": 600, "binary": 2_500, "hostile": 4_200, "empty": 300, "null": 300, "too_large": 0}


def max_input_bytes(registration_bytes: int) -> int:
    """Return the limit of an input topic whose wait topic has this one."""
    return registration_bytes + BEYOND_BYTES


def mean_bytes(shares: Sequence[tuple[str, int]], registration_bytes: int) -> float:
    """Return how large a record is on the average; one that can't be registered isn't held, and counts for nothing."""
    huge, bulky = registration_bytes - ROOM_BYTES, int(registration_bytes * sum(BULKY) / 2)
    sizes = {**MEAN_BYTES, "huge": huge, "bulky": bulky}
    return sum(sizes[kind] * share for kind, share in shares) / sum(share for _, share in shares)


def mixture(shares: Sequence[tuple[str, int]], registration_bytes: int, shuffled: bool = False) -> Maker:
    """Return what makes the records.

    Args:
        shares: kind and weight: "empty", "null", "huge" (as large as can be registered), "too_large" (to be
            registered), "bulky" (so large that a few fill what a processor may hold), or a shape of the load generator
            ("orders", "binary", "hostile").
        registration_bytes: how large a wait record may be.
        shuffled: whether the producer sets the timestamps, in no order.
    """
    kinds, weights = [kind for kind, _ in shares], [weight for _, weight in shares]

    def make(seed: int, index: int) -> Order:
        random = Random(f"mixture/{seed}/{index}")
        kind = random.choices(kinds, weights)[0]
        if kind in ("empty", "null"):
            key = random.choice((None, b"", b"key"))
            return replace(order(seed, index), key=key, value=b"" if kind == "empty" else None)
        if kind in ("huge", "bulky", "too_large"):
            # Random bytes: limits are on what is left after compression.
            return replace(order(seed, index), value=random.randbytes(_size(kind, registration_bytes, random)))
        return SHAPES[kind](seed, index)

    def make_shuffled(seed: int, index: int) -> Order:
        apart_ms = Random(f"timestamp/{seed}/{index}").randint(FROM_MS, TO_MS)
        return replace(make(seed, index), timestamp_ms=time.time_ns() // 1_000_000 + apart_ms)

    return make_shuffled if shuffled else make


def _size(kind: str, registration_bytes: int, random: Random) -> int:
    if kind == "huge":
        return registration_bytes - ROOM_BYTES
    if kind == "bulky":
        return int(registration_bytes * random.uniform(*BULKY))
    return random.randint(registration_bytes + 1, max_input_bytes(registration_bytes) - ROOM_BYTES)
