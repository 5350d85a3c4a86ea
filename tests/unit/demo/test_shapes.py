"""Every shape of records is the same again for the same seed, and has what it is there for."""

from __future__ import annotations

import orjson
import pytest

from wait_registry.demo.hostile import ODDITIES
from wait_registry.demo.orders import Order
from wait_registry.demo.shapes import SHAPES, shape_named


def made(name: str, count: int = 300) -> list[Order]:
    make = shape_named(name)
    return [make(1, index) for index in range(count)]


def is_json(value: bytes | None) -> bool:
    try:
        orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return False
    return True


def decodes(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


ORDERS = made("orders", 2000)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_seed_gives_the_same_records(name: str) -> None:
    assert made(name, 30) == made(name, 30)
    if name not in ("tiny", "hostile"):
        assert made(name, 30) != [shape_named(name)(2, index) for index in range(30)]


def test_keys_and_values_come_in_every_shape() -> None:
    assert any(record.key is None for record in ORDERS)
    assert any(record.value is None for record in ORDERS)
    assert any(record.value == b"" for record in ORDERS)
    binary = [record.value for record in ORDERS if record.value and not is_json(record.value)]
    assert 50 <= len(binary) <= 200
    assert sum(is_json(record.value) for record in ORDERS) > 1700


def test_headers_are_nested_json_with_duplicates_nulls_and_binary() -> None:
    for record in ORDERS:
        names = [name for name, _ in record.headers]
        assert names.count("tag") == 2
        assert isinstance(orjson.loads(dict(record.headers)["context"] or b"")["tenant"], dict)
    assert any(("coupon", None) in record.headers for record in ORDERS)
    assert any(("tag", b"") in record.headers for record in ORDERS)


def test_hostile_records_have_every_oddity_in_turn() -> None:
    records = made("hostile", len(ODDITIES))
    assert any(record.value is None for record in records) and any(record.value == b"" for record in records)
    assert any(record.key is None for record in records) and any(record.key == b"" for record in records)
    assert any(not decodes(record.value) for record in records)
    headers = [record.headers for record in records]
    assert any(len(one) > len({name for name, _ in one}) for one in headers)
    assert any(len(one) >= 200 for one in headers)
    assert any(("null", None) in one for one in headers) and any(("empty", b"") in one for one in headers)
    assert any(not decodes(content) for one in headers for _, content in one)
    assert any(name == "WAIT_LINEAGE" for one in headers for name, _ in one)
    assert [one.key for one in made("hostile", 2 * len(ODDITIES))[len(ODDITIES) : len(ODDITIES) + 1]] == [
        records[0].key
    ]
