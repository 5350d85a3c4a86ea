"""Mixtures of latencies and failures: how they are read, and how often each choice comes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.demo.downstream import Downstream
from wait_registry.demo.mixture import (
    DROPPED,
    Latency,
    Rotation,
    parse_duration_s,
    parse_latency,
    parse_status,
)
from wait_registry.errors import ConfigurationError


def rotation_of(weights: list[int]) -> Rotation[int]:
    return Rotation([(Fraction(weight, sum(weights)), index) for index, weight in enumerate(weights)])


@pytest.mark.parametrize(
    ("parse", "text", "read"),
    [
        (parse_latency, "200ms", Latency(0.2, 0.2)),
        (parse_latency, "1s-5s", Latency(1.0, 5.0)),
        (parse_latency, "500ms - 2s", Latency(0.5, 2.0)),
        (parse_latency, "hang", Latency(math.inf, math.inf)),
        (parse_status, "503", 503),
        (parse_status, "200", 200),
        (parse_status, "drop", DROPPED),
    ],
)
def test_a_choice_is_read(parse: Callable[[str], Any], text: str, read: object) -> None:
    assert parse(text) == read


@pytest.mark.parametrize(
    ("parse", "texts"),
    [
        (parse_latency, ["5s-1s", "1s-", "-1s", "1s-2s-3s", "hangs", "1-5s"]),
        (parse_duration_s, ["", "1", "-1s", "1h", "nans", "infs"]),
    ],
)
def test_an_unreadable_choice_is_refused(parse: Callable[[str], Any], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValueError):
            parse(text)


@pytest.mark.parametrize(
    ("mixture", "failures", "quoted"),
    [
        ("10%:1s,80%:200ms", "", "90 %"),
        ("60%:1s,60%:200ms", "", "120 %"),
        ("10%:1s,90%:fast", "", "90%:fast"),
        ("x%:1s,90%:200ms", "", "x%:1s"),
        ("0.00001%:1s,99.99999%:1ms", "", "10000000"),
        ("1s", "1%:dropped", "1%:dropped"),
        ("1s", "999", "999"),
        ("1s", "101%:503", "101 %"),
        ("soon", "", "soon"),
    ],
)
def test_an_unreadable_mixture_is_quoted(mixture: str, failures: str, quoted: str) -> None:
    with pytest.raises(ConfigurationError, match=quoted):
        Downstream(mixture=mixture, failures=failures)


def test_a_range_is_evenly_used_and_the_same_for_the_same_call() -> None:
    latency = Latency(1.0, 5.0)
    drawn = [latency.of_call(number) for number in range(2000)]
    assert drawn == [latency.of_call(number) for number in range(2000)]
    assert all(1 <= seconds <= 5 for seconds in drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(3.0, abs=0.1)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_each_choice_comes_exactly_as_often_as_its_share(weights: list[int]) -> None:
    rotation = rotation_of(weights)
    counts = Counter(rotation.at(turn) for turn in range(1, len(rotation.turn) + 1))
    for index, weight in enumerate(weights):
        assert Fraction(counts[index], len(rotation.turn)) == Fraction(weight, sum(weights))


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(1, 500))
def test_choices_are_spread_evenly(weights: list[int], turns: int) -> None:
    rotation = rotation_of(weights)
    counts = Counter(rotation.at(turn) for turn in range(1, turns + 1))
    for index, weight in enumerate(weights):
        assert abs(counts[index] - Fraction(turns * weight, sum(weights))) <= len(weights)
