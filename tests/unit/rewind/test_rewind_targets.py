"""Which topics, offsets and moment the options of `waitreg rewind` mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.cli.rewind.targets import Target, chosen_topics, parse_time
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.offset_ranges import parse_ranges, ranges_text
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


@pytest.mark.parametrize("topic", ["orders.shop.retry.10s", "refunds.shop.redeliver"])
def test_own_topics_are_moved_to_their_beginnings_alone(topic: str) -> None:
    assert chosen_topics(SHOP, (topic,), (), earliest=True) == [topic]
    with pytest.raises(ConfigurationError, match="--to-earliest alone"):
        chosen_topics(SHOP, (topic,), ())


@pytest.mark.parametrize(
    ("processor", "topics", "partitions", "said"),
    [
        (SHOP, ("orders.other.retry.10s",), (), "isn't in processor.topics"),
        (SHOP, (), (1,), "--partition needs one topic, and there are 2"),
        (ProcessorSettings(), (), (), r"processor\.group and processor\.topics aren't set"),
    ],
)
def test_other_topics_and_partitions_of_several_are_refused(
    processor: ProcessorSettings, topics: tuple[str, ...], partitions: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        chosen_topics(processor, topics, partitions)


PLACES = st.tuples(st.from_regex(r"[a-zA-Z0-9_-]{1,249}", fullmatch=True), st.integers(0, 999_999_999))
RANGES = st.tuples(st.integers(0, 10**15), st.integers(1, 10**15)).map(lambda pair: range(pair[0], sum(pair)))


@given(st.dictionaries(PLACES, RANGES, min_size=1, max_size=5))
def test_what_is_printed_can_be_typed(ranges: dict[tuple[str, int], range]) -> None:
    assert parse_ranges(ranges_text(ranges).split(" ")) == ranges


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["orders:3:100"], "no TOPIC:PARTITION:START-END, e.g. orders:3:100-250"),
        (["orders:3:250-100"], "is empty: END is the offset after the last record"),
        (["orders:3:100-100"], "is empty"),
        (["orders:three:1-2"], "no TOPIC:PARTITION:START-END"),
        (["or ders:3:1-2"], "no TOPIC:PARTITION:START-END"),
        (["orders:3:-5-2"], "no TOPIC:PARTITION:START-END"),
        (["orders:3:1-2", "orders:3:5-6"], r"orders\[3\] has two ranges"),
    ],
)
def test_a_range_that_means_nothing_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parse_ranges(texts)
