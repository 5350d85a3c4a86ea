"""A job keeps to its rate whatever the sending takes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.pace import Pace

CHUNKS = 200


@given(seed=st.integers(0, 2**32), rate=st.floats(0.1, 500), most=st.floats(0, 0.95))
def test_the_rate_is_kept_within_five_percent(seed: int, rate: float, most: float) -> None:
    """``most``: the longest that a chunk takes, as a part of its time."""
    dice, now_s, size = random.Random(seed), 0.0, max(1, int(rate))
    pace = Pace(now_s)
    for _ in range(CHUNKS):
        now_s += dice.uniform(0, most) * size / rate
        now_s += pace.pause_s(size, rate, now_s)
    assert now_s == pytest.approx(CHUNKS * size / rate, rel=0.05)


def test_lost_time_is_not_made_up_for() -> None:
    pace = Pace(0.0)
    assert pace.pause_s(10, 10.0, 100.0) == 0
    assert pace.pause_s(10, 10.0, 100.2) == pytest.approx(0.8)
    assert pace.pause_s(5, 10.0, 101.0) == pytest.approx(0.5)
