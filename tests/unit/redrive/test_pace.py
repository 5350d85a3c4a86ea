"""A job keeps to its rate whatever the sending takes, and waits for its canary."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.brake import Brake, Sent, retries_s
from redrive.pace import Pace
from tests.support.jobs import requested
from wait_registry.clock import SystemClock
from wait_registry.settings.root import Settings

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


@pytest.mark.parametrize(
    ("canary", "sent", "left"),
    [
        (None, 5, None),
        (10, 0, 10),
        (10, 9, 1),
        (10, 10, 0),
        # It was settled before the executor died, or no other record would have been sent.
        (10, 11, None),
    ],
)
def test_a_job_waits_only_when_exactly_its_canary_is_out(canary: int | None, sent: int, left: int | None) -> None:
    unused: Any = None
    brake = Brake(Settings(), requested("shop", canary=canary), unused, SystemClock(), unused)
    assert brake.canary_left(Sent(0, sent)) == left


def test_retries_take_the_sum_of_the_delays_of_the_groups_own_topics() -> None:
    names = [
        "orders",
        "orders.shop.retry.10s",
        "orders.shop.retry.2m",
        "orders.other.retry.1h",
        "refunds.shop.retry.5s",
    ]
    assert retries_s(names, ["orders", "refunds"], "shop") == 130
    assert retries_s(names, [], "shop") == 0
