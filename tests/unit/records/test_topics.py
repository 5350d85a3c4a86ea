"""A group shares its retry and redelivery topics with no other, and those that it left are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.records.delays import MAX_DELAY_S, delay_text, parse_delay
from wait_registry.records.topics import (
    input_of,
    left_topics,
    redelivery_topic,
    retry_delay_s,
    retry_topic,
    topic_owner,
)

PARTS = st.lists(st.sampled_from(("", "a", "b")), min_size=3, max_size=6)


@given(PARTS)
def test_two_groups_never_have_one_topic(parts: list[str]) -> None:
    splits = [n for n in range(1, len(parts)) if parts[n - 1] and any(parts[n:])]
    read = [(".".join(parts[:n]), ".".join(parts[n:])) for n in splits]
    names = {redelivery_topic(*each) for each in read} | {retry_topic(*each, 5) for each in read}
    assert len(names) == 2 * len(read)
    assert all(topic_owner(redelivery_topic(*each)) == topic_owner(retry_topic(*each, 5)) == each for each in read)


def test_a_group_without_dots_is_named_as_it_is() -> None:
    assert redelivery_topic("orders.v1", "shop") == "orders.v1.shop.redeliver"
    assert retry_topic("orders", "shop.eu", 60) == "orders.shop..eu.retry.1m"


@pytest.mark.parametrize("group", ["shop", "shop.eu", "retry.1m"])
@pytest.mark.parametrize("topic", ["orders", "orders.v1", "orders.redeliver", "orders.retry.1m"])
def test_the_input_of_a_groups_own_topic_comes_back_from_its_name(topic: str, group: str) -> None:
    for name in (topic, redelivery_topic(topic, group), retry_topic(topic, group, 60)):
        assert input_of(name, group) == topic
        assert input_of(name, f"not-{group}") == name
    assert input_of(f".{group}.redeliver", group) == f".{group}.redeliver"


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


@pytest.mark.parametrize(
    ("name", "left"),
    [
        (redelivery_topic("orders", "shop.eu"), None),
        (retry_topic("orders", "shop.eu", 60), None),
        (redelivery_topic("refunds", "shop.eu"), ("refunds", "shop.eu")),
        (retry_topic("re.funds", "shop.eu", 60), ("re.funds", "shop.eu")),
        (redelivery_topic("orders", "old.name"), ("orders", "old.name")),
        (retry_topic("orders", "old", 60), ("orders", "old")),
        (redelivery_topic("refunds", "old"), None),
        ("orders.shop.eu.redeliver", None),
        ("orders.old.retry.soon", None),
        (".shop..eu.redeliver", None),
        ("orders..redeliver", None),
        ("orders", None),
    ],
)
def test_a_topic_with_one_of_input_and_group_is_left(name: str, left: tuple[str, str] | None) -> None:
    assert left_topics([name], ["orders"], "shop.eu") == ({} if left is None else {name: left})
