"""What keeps a redriven record from its topic."""

from __future__ import annotations

import pytest

from redrive.category import Candidate, Category, Standing
from redrive.target import ORIGIN, REDELIVERY, Readers, Route
from wait_registry.kafka.targets import Target
from wait_registry.records.operation import Place
from wait_registry.records.topics import is_topic_name


def looked_up(topic: str) -> Target:
    return Target(topic, 1, 1000) if is_topic_name(topic) else Target(topic, 0, 0, "not a topic name")


@pytest.mark.parametrize(
    ("group", "to", "category"),
    [
        ("data/serving", REDELIVERY, Category.TARGET_UNNAMED),
        ("data/serving", ORIGIN, None),
        ("x" * 240, REDELIVERY, Category.TARGET_UNNAMED),
        ("shop", REDELIVERY, None),
    ],
)
def test_a_group_whose_redelivery_topic_has_no_name_is_sent_to_the_origin(
    group: str, to: str, category: Category | None
) -> None:
    letter = Candidate(
        Place("dlq", 0, 1), "failed", "id", group, Place("orders", 0, 7), False, False, False, False, 10, (), Standing()
    )
    readers = Readers(True, frozenset({"orders", "orders.shop.redeliver"}))
    assert Route(to, looked_up, lambda: readers, lambda topic: True, may_wait=False).obstacle(letter) is category
