"""A group shares its retry and redelivery topics with no other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wait_registry.records.topics import redelivery_topic, retry_topic

PARTS = st.lists(st.sampled_from(("", "a", "b")), min_size=3, max_size=6)


@given(PARTS)
def test_two_groups_never_have_one_topic(parts: list[str]) -> None:
    splits = [n for n in range(1, len(parts)) if parts[n - 1] and any(parts[n:])]
    read = [(".".join(parts[:n]), ".".join(parts[n:])) for n in splits]
    names = {redelivery_topic(*each) for each in read} | {retry_topic(*each, 5) for each in read}
    assert len(names) == 2 * len(read)


def test_a_group_without_dots_is_named_as_it_is() -> None:
    assert redelivery_topic("orders.v1", "shop") == "orders.v1.shop.redeliver"
    assert retry_topic("orders", "shop.eu", 60) == "orders.shop..eu.retry.1m"
