"""How many records a job may send before it waits for its canary, and how long retries take."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.brake import Brake, Sent, retries_s
from tests.support.jobs import requested
from wait_registry.clock import SystemClock
from wait_registry.settings.root import Settings


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
