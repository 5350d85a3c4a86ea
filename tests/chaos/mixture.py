"""The records of a run: each of a kind that is drawn by shares, the same for the same seed and index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from waitreg.orders import Order, order
from waitreg.shapes import Maker, shape_named

# Limits of a run's topics. What lies between them is consumed and can't be registered.
MAX_REGISTRATION_BYTES = 150_000
MAX_INPUT_BYTES = 240_000
# Room for headers, their JSON and the batch around them.
ROOM_BYTES = 6_000


def mixture(shares: Sequence[tuple[str, int]]) -> Maker:
    """Return what makes the records.

    Args:
        shares: kind and weight: "empty", "null", "huge" (as large as can be registered), "too_large" (to be
            registered), or a shape of the load generator ("orders", "binary", "hostile").
    """
    kinds, weights = [kind for kind, _ in shares], [weight for _, weight in shares]

    def make(seed: int, index: int) -> Order:
        random = Random(f"mixture/{seed}/{index}")
        return _make(random.choices(kinds, weights)[0], random, seed, index)

    return make


def _make(kind: str, random: Random, seed: int, index: int) -> Order:
    if kind == "empty":
        return replace(order(seed, index), key=random.choice((None, b"", b"key")), value=b"")
    if kind == "null":
        return replace(order(seed, index), key=random.choice((None, b"", b"key")), value=None)
    if kind == "huge":
        # Random bytes: limits are on what is left after compression.
        return replace(order(seed, index), value=random.randbytes(MAX_REGISTRATION_BYTES - ROOM_BYTES))
    if kind == "too_large":
        size = random.randint(MAX_REGISTRATION_BYTES + 1, MAX_INPUT_BYTES - ROOM_BYTES)
        return replace(order(seed, index), value=random.randbytes(size))
    return shape_named(kind).make(seed, index)
