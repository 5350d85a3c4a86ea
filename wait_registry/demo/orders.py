"""Realistic orders, the same ones for the same seed: the records of the load generator and of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

PRODUCTS = ("espresso beans 1 kg", "paper filters", "grinder", "kettle", "scale", "café crème cups", "Öl-Pfännchen")
CITIES = ("Rotterdam", "Łódź", "Zürich", "São Paulo", "東京", "Leeds")
CHANNELS = ("web", "app", "partner")


@dataclass(frozen=True, slots=True)
class Shape:
    """What the records look like: shares of 0 to 1, and the least size of a JSON value in bytes."""

    null_keys: float = 0.1
    binary_values: float = 0.05
    empty_values: float = 0.01
    null_values: float = 0.01
    min_value_bytes: int = 0


ORDERS = Shape()


@dataclass(frozen=True, slots=True)
class Order:
    """One record to publish."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def order(seed: int, index: int, shape: Shape = ORDERS) -> Order:
    """Return the record of this seed and index."""
    random = Random(f"{seed}/{index}")
    customer = f"customer-{random.randrange(1000):04d}"
    key = None if random.random() < shape.null_keys else customer.encode()
    return Order(key, _value(random, shape, index, customer), _headers(random, customer))


def _value(random: Random, shape: Shape, index: int, customer: str) -> bytes | None:
    draw = random.random()
    for share, content in (
        (shape.null_values, None),
        (shape.empty_values, b""),
        (shape.binary_values, b"\x00\xff\xfe" + random.randbytes(random.randrange(16, 400))),
    ):
        if draw < share:
            return content
        draw -= share
    body = _body(random, index, customer)
    encoded = orjson.dumps(body)
    if len(encoded) < shape.min_value_bytes:
        body["note"] = "x" * (shape.min_value_bytes - len(encoded) - len(',"note":""'))
        encoded = orjson.dumps(body)
    return encoded


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
