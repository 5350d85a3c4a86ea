"""Numbers have three significant digits, thousands apart and a unit; more digits where the verdict would look wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.harness.number import shown, shown_duration, shown_target
from bench.harness.target import Target, at_least, at_most


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3, "3"),
        (250.0, "250"),
        (55_234.1, "55,200"),
        (999.96, "1,000"),
        (1_234_567, "1,230,000"),
        (16.04, "16.0"),
        (3.14159, "3.14"),
        (0.98765, "0.988"),
        (0.001234, "0.00123"),
        (0.0000123, "1.23e-05"),
        (-17.46, "-17.5"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert shown(value) == text


def test_the_unit_stands_behind() -> None:
    assert shown(55_234.1, "records/s") == "55,200 records/s"


@pytest.mark.parametrize(
    ("value", "target", "text"),
    [
        (0.98996, at_least(0.99), "0.98996"),  # three digits would say 0.990
        (0.98765, at_least(0.99), "0.988"),
        (4.0049, at_most(4), "4.005"),
        (4.2, at_most(4), "4.20"),
    ],
)
def test_as_many_digits_as_the_verdict_takes(value: float, target: Target, text: str) -> None:
    assert shown(value, target=target) == text


@given(st.floats(1e-3, 1e7), st.floats(1e-3, 1e7))
def test_what_is_shown_is_near_what_was_measured(value: float, bound: float) -> None:
    for target in (None, at_least(bound)):
        assert float(shown(value, target=target).replace(",", "")) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("target", "unit", "text"),
    [
        (at_least(0.75), "", "≥ 0.75"),
        (at_most(100), "MB", "≤ 100 MB"),
        (at_least(50_000), "records/s", "≥ 50,000 records/s"),
        (at_least(0.99, "99 % of N / mean call"), "", "99 % of N / mean call"),
    ],
)
def test_a_target_in_words(target: Target, unit: str, text: str) -> None:
    assert shown_target(target, unit) == text


@pytest.mark.parametrize(("seconds", "text"), [(8.2, "8 s"), (59, "59 s"), (90, "1.5 min"), (9000, "2.5 h")])
def test_a_duration_in_words(seconds: float, text: str) -> None:
    assert shown_duration(seconds) == text
