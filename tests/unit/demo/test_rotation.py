"""Shares become fixed turns."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.demo.mixture import Rotation, parse_duration_s, parse_rotation
from wait_registry.errors import ConfigurationError


def test_ten_percent_is_every_tenth_call() -> None:
    rotation = parse_rotation("10%:1s,90%:200ms", parse_duration_s)
    slow = [turn for turn in range(1, 101) if rotation.at(turn) == 1.0]
    assert slow == list(range(10, 101, 10))
    assert {rotation.at(turn) for turn in range(1, 10)} == {0.2}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_each_choice_comes_exactly_as_often_as_its_share(weights: list[int]) -> None:
    total = sum(weights)
    rotation = Rotation([(Fraction(weight, total), index) for index, weight in enumerate(weights)])
    counts = Counter(rotation.at(turn) for turn in range(1, rotation.period + 1))
    assert all(
        Fraction(counts[index], rotation.period) == Fraction(weight, total) for index, weight in enumerate(weights)
    )


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(1, 500))
def test_no_choice_clumps(weights: list[int], turns: int) -> None:
    total = sum(weights)
    rotation = Rotation([(Fraction(weight, total), index) for index, weight in enumerate(weights)])
    counts = Counter(rotation.at(turn) for turn in range(1, turns + 1))
    for index, weight in enumerate(weights):
        assert abs(counts[index] - Fraction(turns * weight, total)) <= len(weights)


def test_what_the_shares_leave_over_is_the_rest() -> None:
    rotation = parse_rotation("0.5%:503", int, rest=200)
    assert Counter(rotation.at(turn) for turn in range(1, 1001)) == {200: 995, 503: 5}


def test_a_single_choice_needs_no_share() -> None:
    assert parse_rotation("200ms", parse_duration_s).at(7) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("10%:1s,80%:200ms", "90 %"),
        ("60%:1s,60%:200ms", "120 %"),
        ("10%:1s,90%:fast", "90%:fast"),
        ("10:1s,90%:200ms", "10:1s"),
        ("x%:1s,90%:200ms", "x%:1s"),
        ("0.00001%:1s,99.99999%:1ms", "10000000"),
    ],
)
def test_what_cannot_be_read_is_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ConfigurationError, match=quoted):
        parse_rotation(text, parse_duration_s)


@pytest.mark.parametrize("text", ["", "1", "-1s", "1h", "nans", "infs"])
def test_a_duration_without_a_known_unit_or_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration_s(text)
