"""Which committed offsets aren't in their logs, and how the partitions are named."""

from __future__ import annotations

import pytest

from wait_registry.kafka.outside_log import outside_log, partitions_text


@pytest.mark.parametrize(("offset", "outside"), [(4, True), (5, False), (9, False), (10, True)])
def test_an_offset_before_the_first_or_after_the_end_is_outside(offset: int, outside: bool) -> None:
    place = ("orders", 3)
    assert outside_log({place: offset}, {place: 5}, {place: 9}) == ([place] if outside else [])


def test_what_the_broker_does_not_answer_is_not_outside() -> None:
    assert outside_log({("orders", 0): 7}, {}, {}) == []


def test_partitions_are_named_by_topic_and_run() -> None:
    places = [("orders", number) for number in (5, 0, 2, 1)] + [("odd", 3)]
    assert partitions_text(places) == "odd[3], orders[0-2, 5]"
