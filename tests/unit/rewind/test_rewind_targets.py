"""Which topics and which moment the options of `waitreg rewind` mean."""

from __future__ import annotations

from typing import Any

import pytest

from wait_registry.cli.rewind.targets import Target, chosen_topics, parse_time
from wait_registry.errors import ConfigurationError
from wait_registry.settings.processor import ProcessorSettings

SHOP = ProcessorSettings(group="shop", topics=("orders", "refunds"))


@pytest.mark.parametrize("given", [{}, {"time_ms": 0, "offset": 0}, {"latest": True, "earliest": True}])
def test_exactly_one_target_is_taken(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="give one of --to-time, --to-offset, --to-latest and --to-earliest"):
        Target(**given)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-02", 86_400_000),
    ],
)
def test_a_time_without_an_offset_is_utc(text: str, time_ms: int) -> None:
    assert parse_time(text) == time_ms


def test_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'yesterday' is no ISO 8601 time"):
        parse_time("yesterday")


def test_without_a_topic_all_inputs_are_meant() -> None:
    assert chosen_topics(SHOP, (), ()) == ["orders", "refunds"]
    assert chosen_topics(SHOP, ("refunds",), (0, 3)) == ["refunds"]


@pytest.mark.parametrize(
    ("processor", "topics", "partitions", "said"),
    [
        (SHOP, ("orders.shop.retry.10s",), (), "isn't in processor.topics"),
        (SHOP, (), (1,), "--partition needs one topic, and there are 2"),
        (ProcessorSettings(), (), (), r"processor\.group and processor\.topics aren't set"),
    ],
)
def test_other_topics_and_partitions_of_several_are_refused(
    processor: ProcessorSettings, topics: tuple[str, ...], partitions: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        chosen_topics(processor, topics, partitions)
