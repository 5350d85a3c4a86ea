"""The generated orders are the same for the same seed and have every shape that makes codecs stumble."""

from __future__ import annotations

import orjson

from wait_registry.demo.orders import Shape, order

MANY = [order(1, index) for index in range(2000)]


def is_json(value: bytes | None) -> bool:
    try:
        orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return False
    return True


def test_the_same_seed_gives_the_same_orders_and_another_seed_others() -> None:
    assert order(1, 7) == MANY[7]
    assert order(2, 7) != MANY[7]


def test_keys_and_values_come_in_every_shape() -> None:
    assert any(record.key is None for record in MANY)
    assert any(record.value is None for record in MANY)
    assert any(record.value == b"" for record in MANY)
    binary = [record.value for record in MANY if record.value and not is_json(record.value)]
    assert 50 <= len(binary) <= 200
    assert sum(is_json(record.value) for record in MANY) > 1700


def test_headers_are_nested_json_with_duplicates_nulls_and_binary() -> None:
    for record in MANY:
        names = [name for name, _ in record.headers]
        assert names.count("tag") == 2
        assert isinstance(orjson.loads(dict(record.headers)["context"] or b"")["tenant"], dict)
    assert any(("coupon", None) in record.headers for record in MANY)
    assert any(("tag", b"") in record.headers for record in MANY)


def test_values_can_be_padded_to_a_size() -> None:
    shape = Shape(null_keys=0, binary_values=0, empty_values=0, null_values=0, min_value_bytes=5000)
    sizes = {len(order(1, index, shape).value or b"") for index in range(50)}
    assert sizes == {5000}
