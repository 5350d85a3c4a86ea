"""Ranges of offsets as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.offset_ranges import parse_ranges, ranges_text

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
