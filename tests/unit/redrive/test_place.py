"""A place of a dead letter is read as it is shown, also that of a deleted topic."""

from __future__ import annotations

import pytest

from redrive.dead_letter import parse_place
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Place
from wait_registry.records.topics import kept_topic_name


@pytest.mark.parametrize(
    "topic", ["orders.dlq", "orders.dlq@ZBdojm8pStGzkmrTFMNnnQ", f"{'x' * 249}@ZBdojm8pSt-_kmrTFMNnnQ"]
)
def test_a_place_is_read_as_it_is_shown(topic: str) -> None:
    assert parse_place(f"{topic}:3:17") == Place(topic, 3, 17)


def test_the_dead_letters_of_a_deleted_topic_have_a_place() -> None:
    topic = kept_topic_name("orders.dlq", "/Fa8EzAmTUSjswDp7j7K+Q")
    assert parse_place(f"{topic}:3:17") == Place("orders.dlq@_Fa8EzAmTUSjswDp7j7K-Q", 3, 17)


@pytest.mark.parametrize(
    "text", ["orders.dlq", "orders.dlq:0", "@ID:0:1", "orders.dlq@:0:1", "orders.dlq@a@b:0:1", "a b:0:1"]
)
def test_anything_else_is_no_place(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no place of a record"):
        parse_place(text)
