"""Realistic orders, the same ones for the same seed: the records of the load generator and of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

PRODUCTS = ("espresso beans 1 kg", "paper filters", "grinder", "kettle", "scale", "café crème cups", "Öl-Pfännchen")
CITIES = ("Rotterdam", "Łódź", "Zürich", "São Paulo", "東京", "Leeds")
CHANNELS = ("web", "app", "partner")
NULL_KEYS = 0.1
BINARY_VALUES, EMPTY_VALUES, NULL_VALUES = 0.05, 0.01, 0.01


@dataclass(frozen=True, slots=True)
class Order:
    """One record to publish; ``timestamp_ms`` is since the epoch, 0 for that of the clock."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int = 0


def order(seed: int, index: int) -> Order:
    """Return the record of this seed and index."""
    random = Random(f"{seed}/{index}")
    customer = f"customer-{random.randrange(1000):04d}"
    key = None if random.random() < NULL_KEYS else customer.encode()
    return Order(key, _value(random, index, customer), _headers(random, customer))


def plain(seed: int, index: int) -> Order:
    """Return the order of this seed and index, with a key and a JSON value in any case."""
    random = Random(f"{seed}/{index}")
    customer = f"customer-{random.randrange(1000):04d}"
    return Order(customer.encode(), orjson.dumps(_body(random, index, customer)), _headers(random, customer))


def _value(random: Random, index: int, customer: str) -> bytes | None:
    draw = random.random()
    for share, content in (
        (NULL_VALUES, None),
        (EMPTY_VALUES, b""),
        (BINARY_VALUES, b"\x00\xff\xfe" + random.randbytes(random.randrange(16, 400))),
    ):
        if draw < share:
            return content
        draw -= share
    return orjson.dumps(_body(random, index, customer))


def _body(random: Random, index: int, customer: str) -> dict[str, Any]:
    lines: list[dict[str, Any]] = [
        {"product": random.choice(PRODUCTS), "quantity": random.randint(1, 9), "cents": random.randint(99, 49_900)}
        for _ in range(random.randint(1, 5))
    ]
    return {
        "order": index,
        "customer": {"id": customer, "city": random.choice(CITIES), "vip": random.random() < 0.1},
        "lines": lines,
        "total_cents": sum(line["quantity"] * line["cents"] for line in lines),
        "payment": {"method": random.choice(("card", "invoice", "ideal")), "token": random.randbytes(12).hex()},
    }


def _headers(random: Random, customer: str) -> list[tuple[str, bytes | None]]:
    context = {
        "tenant": {"id": customer, "region": random.choice(("eu", "us", "apac"))},
        "route": [{"hop": hop, "ms": random.randrange(40)} for hop in ("edge", "orders")],
    }
    headers: list[tuple[str, bytes | None]] = [
        ("content-type", b"application/json"),
        ("context", orjson.dumps(context)),
        ("tag", random.choice(CHANNELS).encode()),
        ("tag", b"priority" if random.random() < 0.2 else b""),
        ("signature", random.randbytes(16)),
    ]
    if random.random() < 0.3:
        headers.append(("traceparent", f"00-{random.randbytes(16).hex()}-{random.randbytes(8).hex()}-01".encode()))
    if random.random() < 0.1:
        headers.append(("coupon", None))
    return headers
