"""Every shape of records is the same again for the same seed, and has what it is there for."""

from __future__ import annotations

import orjson
import pytest

from wait_registry.demo.hostile import ODDITIES
from wait_registry.demo.orders import Order, Shape, order
from wait_registry.demo.shapes import HOT_KEY, SHAPES, Keys, maker
from wait_registry.errors import ConfigurationError


def made(name: str, count: int = 300, keys: Keys | None = None) -> list[Order]:
    make = maker(name, keys or Keys())
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
        assert made(name, 30) != [maker(name, Keys())(2, index) for index in range(30)]


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


def test_values_can_be_padded_to_a_size() -> None:
    shape = Shape(null_keys=0, binary_values=0, empty_values=0, null_values=0, min_value_bytes=5000)
    sizes = {len(order(1, index, shape).value or b"") for index in range(50)}
    assert sizes == {5000}


def test_tiny_records_are_tiny() -> None:
    for record in made("tiny"):
        assert len(record.value or b"") + len(record.key or b"") <= 16 and record.headers == []


def test_binary_records_are_mostly_small_and_hardly_ever_text() -> None:
    records = made("binary")
    sizes = sorted(len(record.value or b"") for record in records)
    assert sizes[0] < 32 and sizes[-1] > 8_000 and sizes[len(sizes) // 2] < 2_000
    assert sum(decodes(record.key) for record in records) < 10


def test_large_records_are_json_that_a_usual_topic_still_takes() -> None:
    for record in made("large", 40):
        assert 65_000 <= len(record.value or b"") <= 1_000_000
        assert len(orjson.loads(record.value or b"")["attachment"]) > 60_000


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


@pytest.mark.parametrize("name", ["tiny", "binary", "hostile"])
def test_shares_of_null_and_hot_keys_hold_for_every_shape(name: str) -> None:
    keys = [record.key for record in made(name, 1000, Keys(null=0.25, hot=0.5))]
    assert 200 < sum(key is None for key in keys) < 300
    assert 430 < sum(key == HOT_KEY for key in keys) < 570


def test_without_a_share_of_null_keys_they_are_as_the_shape_has_them() -> None:
    hot = made("orders", 1000, Keys(hot=0.5))
    assert 20 < sum(record.key is None for record in hot) < 80
    assert 430 < sum(record.key == HOT_KEY for record in hot) < 570


@pytest.mark.parametrize(
    ("name", "keys", "orders", "said"),
    [
        ("huge", Keys(), None, "orders, tiny, binary, large, hostile"),
        ("tiny", Keys(null=0.6, hot=0.6), None, "add up to 1.2"),
        ("tiny", Keys(), Shape(), "not of tiny"),
    ],
)
def test_what_cannot_be_made_is_refused(name: str, keys: Keys, orders: Shape | None, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        maker(name, keys, orders)
