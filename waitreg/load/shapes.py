"""The kinds of records that the load generator can make, by name; the same ones for the same seed and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, log
from random import Random
from typing import Final

from waitreg.load.hostile import hostile
from waitreg.load.orders import Order, order, plain

Maker = Callable[[int, int], Order]

BINARY_BYTES: Final = (16, 16_384)


def _tiny(seed: int, index: int) -> Order:
    random = Random(f"tiny/{seed}/{index}")
    return Order(b"%04d" % random.randrange(10_000), b"%d" % index, [])


def _binary(seed: int, index: int) -> Order:
    random = Random(f"binary/{seed}/{index}")
    headers: list[tuple[str, bytes | None]] = [
        ("schema", random.randbytes(4)),
        ("signature", random.randbytes(64)),
        *(("part", random.randbytes(random.randrange(32))) for _ in range(random.randrange(3))),
    ]
    return Order(random.randbytes(16), random.randbytes(_size(random, *BINARY_BYTES)), headers)


def _size(random: Random, least: int, most: int) -> int:
    # As sizes are in real topics: many small ones, few large ones.
    return int(exp(random.uniform(log(least), log(most))))


SHAPES: Final[Mapping[str, Maker]] = {
    "orders": order,
    "plain": plain,
    "tiny": _tiny,
    "binary": _binary,
    "hostile": hostile,
}
