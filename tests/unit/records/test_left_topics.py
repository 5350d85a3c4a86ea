"""Retry and redelivery topics that a group left when its input topics or its name changed."""

from __future__ import annotations

import pytest

from wait_registry.records.topics import left_topics, redelivery_topic, retry_topic


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
