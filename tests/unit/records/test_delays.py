"""Delays have one spelling in the names of topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.records.delays import MAX_DELAY_S, delay_text, parse_delay
from wait_registry.records.topics import retry_delay_s, retry_topic


@given(st.integers(1, MAX_DELAY_S))
def test_a_delay_comes_back_from_the_name_of_its_topic(seconds: int) -> None:
    assert parse_delay(delay_text(seconds)) == seconds
    assert retry_delay_s(retry_topic("orders", "shop", seconds), "orders", "shop") == seconds


@pytest.mark.parametrize(
    ("text", "name"), [("60s", "1m"), ("90s", "90s"), ("120m", "2h"), ("24h", "1d"), ("25h", "25h")]
)
def test_a_delay_names_a_topic_in_one_way(text: str, name: str) -> None:
    assert delay_text(parse_delay(text)) == name
    assert (retry_delay_s(f"orders.shop.retry.{text}", "orders", "shop") is None) == (text != name)


@pytest.mark.parametrize("text", ["", "0s", "10", "s", "-1s", "1.5s", "01s", "1 s", "1S", "366d", "999999999s"])
def test_what_is_no_delay_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a whole number and s, m, h or d \(10s, 5m, 2h, 1d\)"):
        parse_delay(text)
    assert retry_delay_s(f"orders.shop.retry.{text}", "orders", "shop") is None
