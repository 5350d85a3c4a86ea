"""The kinds of records that the load generator can make, by name; the same ones for the same seed and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log
from random import Random
from typing import Final

import orjson

from wait_registry.demo.hostile import hostile
from wait_registry.demo.orders import Order, Shape, order
from wait_registry.errors import ConfigurationError

Maker = Callable[[int, int], Order]

HOT_KEY: Final = b"hot"
# A topic takes 1 MiB at most by default.
LARGE_BYTES: Final = (65_536, 900_000)
BINARY_BYTES: Final = (16, 16_384)


@dataclass(frozen=True, slots=True)
class Keys:
    """Shares (0 to 1) of records whose key is null, or the one hot key; None leaves null keys to the shape."""

    null: float | None = None
    hot: float = 0.0


def shape_named(name: str) -> Maker:
    """Return what makes the records of a shape; raise ConfigurationError that lists the names there are."""
    if name not in SHAPES:
        raise ConfigurationError(f"{name!r} is no shape of records; they are {', '.join(SHAPES)}")
    return SHAPES[name]


def maker(name: str, keys: Keys, orders: Shape | None = None) -> Maker:
    """Return what makes the records of a load.

    Args:
        name: of the shape.
        keys: shares of null and hot keys.
        orders: how orders differ from the usual ones; only for the shape ``orders``.

    Raises:
        ConfigurationError: no such shape, shares of keys beyond 1 in all, or settings of orders for another shape.
    """
    if (share := (keys.null or 0.0) + keys.hot) > 1:
        raise ConfigurationError(f"the shares of null and hot keys add up to {share:g}; together they can't exceed 1")
    make = shape_named(name)
    if orders is not None:
        if name != "orders":
            raise ConfigurationError(f"sizes and shares of values are settings of the shape orders, not of {name}")
        make = partial(order, shape=orders)
    return make if keys == Keys() else partial(_with_keys, make, keys)


def _with_keys(make: Maker, keys: Keys, seed: int, index: int) -> Order:
    made, draw = make(seed, index), Random(f"key/{seed}/{index}").random()
    if draw < keys.hot:
        return replace(made, key=HOT_KEY)
    if keys.null is None:
        return made
    if draw < keys.hot + keys.null:
        return replace(made, key=None)
    return replace(made, key=b"key-%d" % index) if made.key is None else made


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


def _large(seed: int, index: int) -> Order:
    random = Random(f"large/{seed}/{index}")
    small = order(seed, index)
    body = orjson.loads(_body_of(small))
    body["attachment"] = random.randbytes(_size(random, *LARGE_BYTES) // 2).hex()
    return replace(small, value=orjson.dumps(body))


def _body_of(record: Order) -> bytes:
    try:
        return record.value if isinstance(orjson.loads(record.value or b""), dict) and record.value else b"{}"
    except orjson.JSONDecodeError:
        return b"{}"


def _size(random: Random, least: int, most: int) -> int:
    # As sizes are in real topics: many small ones, few large ones.
    return int(exp(random.uniform(log(least), log(most))))


SHAPES: Final[Mapping[str, Maker]] = {
    "orders": order,
    "tiny": _tiny,
    "binary": _binary,
    "large": _large,
    "hostile": hostile,
}
