"""Shapes of records, and mixtures of latencies and failures: how they are read, and how often each choice comes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.errors import ConfigurationError
from waitreg.downstream.mixture import DROPPED, Latency, Rotation, parse_duration_s, parse_latency, parse_status
from waitreg.downstream.service import Downstream
from waitreg.load.hostile import ODDITIES
from waitreg.load.orders import Order
from waitreg.load.shapes import SHAPES


@pytest.mark.parametrize(
    ("parse", "text", "read"),
    [
        (parse_latency, "200ms", Latency(0.2, 0.2)),
        (parse_latency, "1s-5s", Latency(1.0, 5.0)),
        (parse_latency, "500ms - 2s", Latency(0.5, 2.0)),
        (parse_latency, "hang", Latency(math.inf, math.inf)),
        (parse_status, "503", 503),
        (parse_status, "200", 200),
        (parse_status, "drop", DROPPED),
    ],
)
def test_a_choice_is_read(parse: Callable[[str], Any], text: str, read: object) -> None:
    assert parse(text) == read


@pytest.mark.parametrize(
    ("parse", "texts"),
    [
        (parse_latency, ["5s-1s", "1s-", "-1s", "1s-2s-3s", "hangs", "1-5s"]),
        (parse_duration_s, ["", "1", "-1s", "1h", "nans", "infs"]),
    ],
)
def test_an_unreadable_choice_is_refused(parse: Callable[[str], Any], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValueError):
            parse(text)


@pytest.mark.parametrize(
    ("mixture", "failures", "quoted"),
    [
        ("10%:1s,80%:200ms", "", "90 %"),
        ("60%:1s,60%:200ms", "", "120 %"),
        ("10%:1s,90%:fast", "", "90%:fast"),
        ("x%:1s,90%:200ms", "", "x%:1s"),
        ("0.00001%:1s,99.99999%:1ms", "", "10000000"),
        ("1s", "1%:dropped", "1%:dropped"),
        ("1s", "999", "999"),
        ("1s", "101%:503", "101 %"),
        ("soon", "", "soon"),
    ],
)
def test_an_unreadable_mixture_is_quoted(mixture: str, failures: str, quoted: str) -> None:
    with pytest.raises(ConfigurationError, match=quoted):
        Downstream(mixture=mixture, failures=failures)


def test_a_range_is_evenly_used_and_the_same_for_the_same_call() -> None:
    latency = Latency(1.0, 5.0)
    drawn = [latency.of_call(number) for number in range(2000)]
    assert drawn == [latency.of_call(number) for number in range(2000)]
    assert all(1 <= seconds <= 5 for seconds in drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(3.0, abs=0.1)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 500))
def test_each_choice_comes_as_often_as_its_share_and_spread_evenly(weights: list[int], turns: int) -> None:
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    rotation = Rotation([(share, index) for index, share in enumerate(shares)])
    for number, off in ((len(rotation.turn), 0), (turns, len(weights))):
        counts = Counter(rotation.at(turn) for turn in range(1, number + 1))
        assert all(abs(counts[index] - number * share) <= off for index, share in enumerate(shares))


def made(name: str, count: int = 300) -> list[Order]:
    make = SHAPES[name]
    return [make(1, index) for index in range(count)]


def reads(read: Callable[[bytes], object], value: bytes | None) -> bool:
    try:
        read(value or b"")
    except ValueError:
        return False
    return True


ORDERS = made("orders", 2000)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_seed_gives_the_same_records(name: str) -> None:
    assert made(name, 30) == made(name, 30)
    if name not in ("tiny", "hostile"):
        assert made(name, 30) != [SHAPES[name](2, index) for index in range(30)]


def test_keys_and_values_come_in_every_shape() -> None:
    assert any(record.key is None for record in ORDERS)
    assert any(record.value is None for record in ORDERS)
    assert any(record.value == b"" for record in ORDERS)
    binary = [record.value for record in ORDERS if record.value and not reads(orjson.loads, record.value)]
    assert 50 <= len(binary) <= 200
    assert sum(reads(orjson.loads, record.value) for record in ORDERS) > 1700


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
    assert any(not reads(bytes.decode, record.value) for record in records)
    headers = [record.headers for record in records]
    assert any(len(one) > len({name for name, _ in one}) for one in headers)
    assert any(len(one) >= 200 for one in headers)
    assert any(("null", None) in one for one in headers) and any(("empty", b"") in one for one in headers)
    assert any(not reads(bytes.decode, content) for one in headers for _, content in one)
    assert any(name == "WAIT_LINEAGE" for one in headers for name, _ in one)
    assert made("hostile", len(ODDITIES) + 1)[-1].key == records[0].key
