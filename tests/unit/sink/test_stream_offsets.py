"""Spark's offset log is read as it is written, and anything else is refused."""

from __future__ import annotations

import json

import pytest

from sink.position import TopicPartition
from sink.stream_offsets import assignment, parse_offsets, starting_offsets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_end_offsets_of_several_topics_are_read() -> None:
    text = 'v1\n{"batchWatermarkMs":0}\n{"a":{"0":6,"1":7},"b":{"0":0}}'
    assert parse_offsets(text) == {A0: 6, A1: 7, B0: 0}


@pytest.mark.parametrize("text", ["", "v1\n{}", "v2\n{}\n{}", "v1\n{}\n{}\n{}"])
def test_another_format_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="offset log"):
        parse_offsets(text)


def test_every_partition_is_assigned_and_has_a_start() -> None:
    assert json.loads(assignment([B0, A1, A0])) == {"a": [0, 1], "b": [0]}
    assert json.loads(starting_offsets({A1: 7, A0: 6, B0: 0})) == {"a": {"0": 6, "1": 7}, "b": {"0": 0}}
